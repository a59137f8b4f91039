"""A plain training loop, and what changes in it: the lines marked with + and -."""

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

prepared = pactrain.prepare(model, loader, epochs=30)  # +
posterior, optimizer, schedule = prepared.posterior, prepared.optimizer, prepared.schedule  # - torch.optim.Adam(…)

for _ in range(prepared.epochs):
    for inputs, target in loader:
        loss = F.cross_entropy(posterior(inputs), target)  # - model(inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # +

inputs, target = next(iter(DataLoader(test, batch_size=len(test))))
print(f"accuracy {(model(inputs).argmax(1) == target).float().mean():.3f}, KL {posterior.kl().item():.0f} nats")
