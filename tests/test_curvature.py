"""Closed-form stds and natural steps on a loss whose curvature is known."""

import torch
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.curvature import CurvatureStds

CURVATURES = torch.tensor([0.0, 0.5, 4.0])
TARGET = torch.tensor([1.0, 1.0, 1.0])
WEIGHT = 0.01


class Point(nn.Module):
    """Three weights and a quadratic loss."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3))

    def forward(self) -> Tensor:
        return 0.5 * (CURVATURES * (self.w - TARGET).square()).sum()


def trained(steps: int) -> tuple[Posterior, CurvatureStds]:
    """A posterior trained by natural steps with a fixed prior of std 0.5."""
    posterior = Posterior(Point(), Prior(std=0.5))
    stds = CurvatureStds(posterior, kl_weight=WEIGHT, memory=0.995, log_std_range=(-6, 1), first=0.01, moves="natural")
    for step in range(steps):
        stds.draw(step)
        posterior.model().backward()
        stds.learn(0.1 * (1 - step / steps), step)
    stds.rest()
    return posterior, stds


def test_stds_and_means_reach_the_minimum_of_the_objective() -> None:
    posterior, _ = trained(4000)
    wanted = 1 / (CURVATURES / WEIGHT + 1 / 0.25)
    torch.testing.assert_close((2 * posterior.log_std.detach()).exp(), wanted, rtol=0.15, atol=1e-4)
    best = CURVATURES * TARGET / (CURVATURES + WEIGHT / 0.25)
    torch.testing.assert_close(posterior.means()[0].detach(), best, rtol=0.03, atol=0.02)


def test_the_prior_minimises_the_divergence() -> None:
    posterior, stds = trained(500)
    kept = posterior.log_std.detach().clone()
    stds.update_prior()
    with torch.no_grad():
        posterior.log_std.copy_(kept)  # update_prior lets the stds follow the new prior at once
    at_best = posterior.kl_by_group().sum()
    for nudge in (-0.05, 0.05):
        assert posterior.kl_by_group(posterior.prior_log_std.detach() + nudge).sum() > at_best
