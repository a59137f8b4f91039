"""Noise for each example has the law of drawn networks; which networks may have it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.certification.measures import measures_for
from pactrain.certification.noise_per_example import noise_for_each_example, noisy_layers
from pactrain.certification.risks import measure_risks
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.events import silent
from tests.certification.small_posteriors import Product, mlp, noise, noisy_posterior
from tests.zoo import rows

CE, CPU = LOSSES["cross_entropy"], torch.device("cpu")
MEASURES = measures_for(CE, 2)


def noisy(model: nn.Module, std: float) -> Posterior:
    """A posterior with the same noise for all weights."""
    return Posterior(model.eval(), Prior(std=std))


def test_noise_for_each_example_has_the_law_of_drawn_networks() -> None:
    posterior = noisy(nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), std=0.4)
    x, count = rows(1)[0], 20_000
    with torch.no_grad(), noise_for_each_example(noisy_layers(posterior), torch.Generator().manual_seed(0)) as uses:
        quick = posterior.model(x.expand(count, 6))
    assert uses == [count, count]
    with torch.no_grad():
        slow = torch.cat([posterior(x, generator=torch.Generator().manual_seed(i)) for i in range(count // 4)])
    for moment in (1, 2, 3):
        a, b = quick**moment, slow**moment
        error = 5 * (a.var(0) / len(a) + b.var(0) / len(b)).sqrt()
        assert ((a.mean(0) - b.mean(0)).abs() < error).all(), moment
    together = torch.corrcoef(quick.T) - torch.corrcoef(slow.T)
    assert together.abs().max() < 0.06
    assert abs(torch.corrcoef(torch.stack([quick[:-1, 0], quick[1:, 0]]))[0, 1]) < 0.03


def test_noise_for_each_example_of_a_convolution_has_the_law_of_drawn_networks() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2))
    posterior = noisy(model, std=0.4)
    x, count = torch.randn(1, 2, 4, 4), 8000
    with torch.no_grad(), noise_for_each_example(noisy_layers(posterior), torch.Generator().manual_seed(0)) as uses:
        quick = posterior.model[:2](x.expand(count, 2, 4, 4)).flatten(1)  # type: ignore[index]
    assert uses == [count, 0]
    with torch.no_grad():
        layer = Posterior(model[0], Prior(std=0.4))
        slow = torch.cat(
            [layer(x, generator=torch.Generator().manual_seed(i)).tanh().flatten(1) for i in range(count // 2)]
        )
    for moment in (1, 2, 3):
        a, b = quick**moment, slow**moment
        error = 5 * (a.var(0) / len(a) + b.var(0) / len(b)).sqrt()
        assert ((a.mean(0) - b.mean(0)).abs() < error).all(), moment
    together = torch.corrcoef(quick.T) - torch.corrcoef(slow.T)  # places of one example share their weights
    assert together.abs().max() < 0.09
    assert abs(torch.corrcoef(torch.stack([quick[:-1, 0], quick[1:, 0]]))[0, 1]) < 0.04


class Around(nn.Module):
    """A linear layer, and what is made of it."""

    def __init__(self, use: Callable[[nn.Linear, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.use = nn.Linear(2, 2), use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self.layer, x)


def refusing(layer: nn.Linear, x: Tensor) -> Tensor:
    if layer.weight.isnan().any():
        raise ValueError("NaN")
    return layer(x)  # type: ignore[no-any-return]


def frozen(name: str) -> nn.Module:
    model = mlp()
    model.get_parameter(name).requires_grad_(False)
    return model


def tied(name: str) -> nn.Module:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    setattr(model[2], name, getattr(model[0], name))
    return model


class Idle(Product):
    """Weights that are not those of linear layers, and not used."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Own(nn.Linear):
    """A linear layer with a forward of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.weight.mean()


class Image(nn.Module):
    """A convolution of rows that are looked at as images."""

    def __init__(self, layer: nn.Conv2d, *, channels: int = 1, batch: bool = True) -> None:
        super().__init__()
        self.layer, self.channels, self.batch = layer, channels, batch

    def forward(self, x: Tensor) -> Tensor:
        if not self.batch:
            return self.layer(x[None])[0]  # type: ignore[no-any-return]
        return self.layer(x.view(len(x), self.channels, 1, -1)).flatten(1)  # type: ignore[no-any-return]


def test_large_convolutions_are_drawn_for_chunks() -> None:
    for outputs, layers in ((500, 1), (501, 0)):  # 300,000 weights and more
        assert len(noisy_layers(noisy_posterior(nn.Conv2d(600, outputs, 1)))) == layers


SCHEMES: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "plain": (mlp, True),
    "alone": (lambda: nn.Linear(2, 2), True),
    "no bias": (lambda: mlp(bias=False), True),
    "frozen bias": (lambda: frozen("2.bias"), True),
    "frozen weight": (lambda: frozen("2.weight"), False),
    "inside": (lambda: Around(lambda layer, x: layer(x).tanh()), True),
    "other weights": (Product, False),
    "other weights, unused": (Idle, False),
    "tied weights": (lambda: tied("weight"), False),
    "tied biases": (lambda: tied("bias"), False),
    "a class of its own": (lambda: nn.Sequential(Own(2, 2)), False),
    "twice": (lambda: Around(lambda layer, x: layer(layer(x))), False),
    "twice and once": (lambda: nn.Sequential(Around(lambda layer, x: layer(layer(x))), nn.Linear(2, 2)), False),
    "unused": (lambda: Around(lambda _, x: x), False),
    "rows within rows": (lambda: Around(lambda layer, x: layer(x[:, None].expand(-1, 3, -1)).mean(1)), False),
    "one row within a row": (lambda: Around(lambda layer, x: layer(x[:, None])[:, 0]), True),
    "parts of an example as rows": (
        lambda: Around(lambda layer, x: layer(x.repeat_interleave(3, 0)).view(-1, 3, 2).mean(1)),
        False,
    ),
    "convolution": (lambda: Image(nn.Conv2d(1, 2, (1, 2))), True),
    "convolution without bias": (lambda: Image(nn.Conv2d(1, 2, (1, 2), bias=False)), True),
    "convolution of one image": (lambda: Image(nn.Conv2d(1, 1, 1), batch=False), False),
    "convolution of groups": (lambda: Image(nn.Conv2d(2, 2, 1, groups=2), channels=2), False),
    "convolution around a circle": (lambda: Image(nn.Conv2d(1, 2, (1, 2), padding_mode="circular")), False),
    "weights elsewhere": (lambda: Around(lambda layer, x: layer(x) + layer.weight.sum(0)), False),
    "bias elsewhere": (lambda: Around(lambda layer, x: layer(x) * layer.bias), False),
    "refuses NaN": (lambda: Around(refusing), False),
    "another kind of layer": (lambda: nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), False),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_schemes(name: str) -> None:
    build, each = SCHEMES[name]
    posterior, data = noisy_posterior(build()), TensorBatches(noise(40), 40)
    before = [p.detach().clone() for p in posterior.means()]
    risks = measure_risks(posterior, data, CE, MEASURES, values=1, seed=0, progress=silent)
    assert risks.scheme == ("examples" if each else "chunks")
    assert risks.values == (40 if each else 1.25)
    assert all(not module._forward_hooks for module in posterior.model.modules())
    assert all(map(torch.equal, before, posterior.means()))


def test_networks_with_other_weights_have_no_such_layers() -> None:
    assert noisy_layers(noisy_posterior(tied("bias"))) == noisy_layers(noisy_posterior(Product())) == []


def scheme_of(batch: Any, loss: Any) -> str:
    posterior, data = noisy_posterior(nn.Linear(2, 2)), LoaderBatches([batch], CPU)
    return measure_risks(posterior, data, as_loss(loss, None), [], values=1, seed=0, progress=silent).scheme


def test_one_row_of_the_input_is_one_example() -> None:
    x, y = noise(40)

    def pairs(predict: Any, batch: Any) -> Tensor:
        """Two rows make one example."""
        return F.cross_entropy(predict(batch[0]), batch[1], reduction="none").view(-1, 2).mean(1)

    def halves(predict: Any, batch: Any) -> Tensor:
        """The same, with one target for two rows."""
        return F.cross_entropy(predict(batch[0]).view(-1, 2, 2).mean(1), batch[1], reduction="none")

    def alone(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch["x"]), batch["y"], reduction="none")

    def nested(predict: Any, batch: Any) -> Tensor:
        return F.cross_entropy(predict(batch[0]["x"]), batch[1], reduction="none")

    class Graph(tuple):  # type: ignore[type-arg]
        edge_index = torch.zeros(2, 0)

    assert scheme_of((x, y), CE) == scheme_of([x, y], CE) == "examples"
    assert scheme_of((x, y), pairs) == "chunks"
    assert scheme_of((x, y[:20]), halves) == "chunks"
    assert scheme_of({"x": x, "y": y}, alone) == "chunks"
    assert scheme_of(({"x": x}, y), nested) == "chunks"
    assert scheme_of(Graph((x, y)), CE) == "chunks"
