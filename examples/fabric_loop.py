"""A loop with Lightning Fabric: set up the posterior instead of the network, and call it as before."""

import torch
import torch.nn.functional as F
from lightning.fabric import Fabric
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import pactrain

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(X / 16).float(), torch.tensor(y))
train, test = torch.utils.data.random_split(data, [900, 897])
loader = DataLoader(train, batch_size=50, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

posterior = pactrain.Posterior(model)
moment = pactrain.estimate_moment(posterior, loader, "cross_entropy", draws=3)
bound = pactrain.bounds.Unbounded(n=len(train), delta=0.05, moment=moment)

fabric = Fabric(accelerator="cpu", devices=1)
wrapped, optimizer = fabric.setup(posterior, torch.optim.Adam(posterior.parameters(), lr=3e-3))
loader = fabric.setup_dataloaders(loader)
for _ in range(15):
    for inputs, target in loader:
        losses = F.cross_entropy(wrapped(inputs), target, reduction="none")
        optimizer.zero_grad()
        fabric.backward(bound(losses, posterior).total)
        optimizer.step()

inputs, target = next(iter(DataLoader(test, batch_size=len(test))))
right = (model(inputs.to(fabric.device)).argmax(1).cpu() == target).float().mean()
print(f"Fabric: accuracy {right:.3f}, KL {posterior.kl().item():.0f} nats")
