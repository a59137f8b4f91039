"""A loop with Hugging Face accelerate: prepare the posterior instead of the network, and call it as before."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import pactrain

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(X / 16).float(), torch.tensor(y))
train, test = torch.utils.data.random_split(data, [900, 897])
loader = DataLoader(train, batch_size=50, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

prepared = pactrain.prepare(model, loader, epochs=15)
posterior, schedule = prepared.posterior, prepared.schedule

accelerator = Accelerator(cpu=True)
wrapped, optimizer, loader = accelerator.prepare(posterior, prepared.optimizer, loader)
for _ in range(prepared.epochs):
    for inputs, target in loader:
        loss = F.cross_entropy(wrapped(inputs), target)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()

inputs, target = next(iter(DataLoader(test, batch_size=len(test))))
right = (model(inputs.to(accelerator.device)).argmax(1).cpu() == target).float().mean()
print(f"accelerate: accuracy {right:.3f}, KL {posterior.kl().item():.0f} nats")
