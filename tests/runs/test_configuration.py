"""The fingerprint of a network's structure, by which a run is resumed with the network that it began with."""

import torch
from torch import Tensor, nn

from pactrain.runs.configuration import model_digest


class Doubled(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


class Tripled(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return 3 * super().forward(input)


def test_structure_and_own_code_count_and_weights_do_not() -> None:
    assert model_digest(nn.Linear(3, 2)) == model_digest(nn.Linear(3, 2))
    assert model_digest(nn.Linear(3, 2)) != model_digest(nn.Linear(3, 1))
    assert model_digest(nn.Sequential(nn.Linear(3, 2))) != model_digest(nn.Linear(3, 2))
    assert model_digest(Doubled(3, 2)) == model_digest(Doubled(3, 2))


def test_another_forward_pass_of_the_same_name_is_another_network() -> None:
    before = model_digest(Doubled(3, 2))
    Tripled.__qualname__ = Tripled.__name__ = "Doubled"
    assert repr(Tripled(3, 2)) == repr(Doubled(3, 2))
    assert model_digest(Tripled(3, 2)) != before


def test_code_without_a_source_counts_by_its_name() -> None:
    names: dict[str, type[nn.Module]] = {}
    exec("class Typed(nn.Module):\n    def forward(self, x): return x", {"nn": nn}, names)
    assert len(model_digest(names["Typed"]())) == 32
    assert torch.equal(names["Typed"]()(torch.ones(1)), torch.ones(1))
