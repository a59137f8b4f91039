"""A loss of one's own: a network that predicts a mean and a standard deviation, trained by the Gaussian likelihood."""

import torch

import pactrain

generator = torch.Generator().manual_seed(0)
x = 4 * torch.rand(400, 1, generator=generator) - 2
y = torch.sin(2 * x) + (0.05 + 0.2 * (x > 0)) * torch.randn(400, 1, generator=generator)


def likelihood(predict, batch):
    """Negative log-likelihood of each example, in nats."""
    inputs, target = batch
    mean, log_std = predict(inputs).split(1, dim=1)
    return (log_std + 0.5 * ((target - mean) / log_std.exp()).square())[:, 0]


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
result = pactrain.fit(model, (x, y), loss=likelihood, budget="150 epochs")
quiet, loud = model(torch.tensor([[-1.0], [1.0]]))[:, 1].exp().tolist()
print(f"standard deviation at -1: {quiet:.2f} (true .05), at +1: {loud:.2f} (true .25)")
print(f"loss {result.metrics['train']['loss']:.3f} after {len(result.history)} epochs")
