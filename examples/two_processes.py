"""One run in two processes; start it with: torchrun --standalone --nproc-per-node 2 examples/two_processes.py"""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pactrain

torch.set_num_threads(1)  # two processes that both use all cores would wait for each other
dist.init_process_group("gloo")

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

# every process is given all rows and takes its share of each batch; all end with the same weights
result = pactrain.fit(model, (X_train, y_train), test=(X_test, y_test), budget="15 epochs")
if dist.get_rank() == 0:
    print(f"{dist.get_world_size()} processes, test accuracy {result.metrics['test']['accuracy']:.3f}")
dist.destroy_process_group()
