"""A plain training loop, and what changes in it: the lines marked with +, and the loss."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

import pactrain

torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(X / 16).float(), torch.tensor(y))
train, test = torch.utils.data.random_split(data, [900, 897])
loader = DataLoader(train, batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

posterior = pactrain.Posterior(model)  # +
moment = pactrain.estimate_moment(posterior, loader, "cross_entropy")  # +
bound = pactrain.bounds.Unbounded(n=len(train), delta=0.05, moment=moment)  # +
optimizer = torch.optim.Adam(posterior.parameters(), lr=3e-3)  # - model.parameters()

for _ in range(30):
    for inputs, target in loader:
        losses = F.cross_entropy(
            posterior(inputs), target, reduction="none"
        )  # - F.cross_entropy(model(inputs), target)
        optimizer.zero_grad()
        bound(losses, posterior).total.backward()  # - losses.backward()
        optimizer.step()

inputs, target = next(iter(DataLoader(test, batch_size=len(test))))
print(f"accuracy {(model(inputs).argmax(1) == target).float().mean():.3f}, KL {posterior.kl().item():.0f} nats")
