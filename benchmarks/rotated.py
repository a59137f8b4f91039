"""A prototype: noise along the eigenvectors of each layer's curvature, against noise on each weight by itself.

    python benchmarks/rotated.py --seeds 0,1,2

A prior with one std per layer looks the same from all sides, so a posterior N(mean, U diag(s²) Uᵀ) has for every orthogonal U the divergence of U = 1.
Here U diagonalises the Kronecker factors of the loss's curvature (E[aaᵀ] ⊗ E[ggᵀ], inputs and gradients of a layer) at draws from the trained posterior.  The network
is trained with `bound="kl"`; then both posteriors get their stds in closed form from the same curvature, s² = 1/(1/prior² + c h), and the same mean.
c is varied for both; nobody pays for that choice, nor for measuring, so the numbers compare and certify nothing.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import pactrain
from pactrain.bounds.kl import kl_bound
from pactrain.data.load import load
from pactrain.models.named import make_model

RESULTS = Path(__file__).resolve().parent / "results" / "rotated.json"
DELTA, DRAWS, ROUNDS = 0.05, 30, 20
STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""c, in units of the number of rows."""


class Layer:
    """A linear layer with its bias as one more column: mean, way from the prior's mean, and eigenvectors of the curvature's factors."""

    def __init__(self, module: nn.Linear, initial: dict[str, Tensor], name: str) -> None:
        self.module = module
        self.mean = torch.cat([module.weight, module.bias[:, None]], 1).detach().clone()
        before = torch.cat([initial[f"{name}.weight"], initial[f"{name}.bias"][:, None]], 1)
        self.shift = self.mean - before
        self.inputs = torch.zeros(self.mean.shape[1], self.mean.shape[1])
        self.gradients = torch.zeros(len(self.mean), len(self.mean))

    def look(self, a: Tensor, g: Tensor) -> None:
        """Add a batch's inputs, and gradients of each row's loss."""
        a = torch.cat([a, a.new_ones(len(a), 1)], 1)
        self.inputs += a.T @ a
        self.gradients += g.T @ g

    def put(self, weights: Tensor) -> None:
        """Set the layer to these weights."""
        self.module.weight.copy_(weights[:, :-1])
        self.module.bias.copy_(weights[:, -1])


class Posterior:
    """Gaussians around the mean for every layer, along the weights or along the eigenvectors."""

    def __init__(self, layers: list[Layer], rows: int, strength: float, *, rotated: bool) -> None:
        self.layers, self.kl, self.kl_of_means = layers, 0.0, 0.0
        self.bases: list[tuple[Tensor | None, Tensor | None]] = []
        self.stds: list[Tensor] = []
        for layer in layers:
            a, g = layer.inputs.double() / rows, layer.gradients.double() / rows
            if rotated:
                (ha, ua), (hg, ug) = torch.linalg.eigh(a), torch.linalg.eigh(g)
            else:
                ha, ua, hg, ug = a.diagonal(), None, g.diagonal(), None
            h = (strength * rows * torch.outer(hg.clamp_min(0), ha.clamp_min(0))).float()
            prior = torch.tensor(0.01)
            for _ in range(ROUNDS):  # prior and posterior in turn, each the best beside the other
                variance = 1 / (1 / prior + h)
                prior = (variance + layer.shift.square()).mean()
            ratio = variance / prior
            self.kl += float(0.5 * (ratio - 1 - ratio.log() + layer.shift.square() / prior).double().sum())
            self.kl_of_means += float(0.5 * (layer.shift.square() / prior).double().sum())
            self.bases.append((None, None) if ua is None or ug is None else (ua.float(), ug.float()))
            self.stds.append(variance.sqrt())

    def draw(self, g: torch.Generator) -> None:
        """Set the network to a draw."""
        for layer, (ua, ug), std in zip(self.layers, self.bases, self.stds, strict=True):
            noise = std * torch.randn(std.shape, generator=g)
            layer.put(layer.mean + (noise if ua is None or ug is None else ug @ noise @ ua.T))


def look_at(trained: pactrain.Posterior, layers: list[Layer], x: Tensor, g: torch.Generator) -> None:
    """Gather the curvature's factors, with labels drawn from the network's own answers (Fisher)."""
    kept: dict[nn.Module, Tensor] = {}
    hooks = [
        layer.module.register_forward_hook(lambda m, given, _: kept.__setitem__(m, given[0].detach()))
        for layer in layers
    ]
    outs: dict[nn.Module, Tensor] = {}
    hooks += [layer.module.register_forward_hook(lambda m, _, out: outs.__setitem__(m, out)) for layer in layers]
    for part in x.split(500):
        with trained.sampled(g) as model:
            answers = model(part)
            labels = torch.multinomial(answers.detach().softmax(1), 1, generator=g)[:, 0]
            loss = nn.functional.cross_entropy(answers, labels, reduction="sum")
            gradients = torch.autograd.grad(loss, [outs[layer.module] for layer in layers])
        for layer, gradient in zip(layers, gradients, strict=True):
            layer.look(kept[layer.module], gradient)
    for hook in hooks:
        hook.remove()


@torch.no_grad()
def error_of(model: nn.Sequential, posterior: Posterior, x: Tensor, y: Tensor, seed: int) -> float:
    """Mean 0-1 error of drawn networks."""
    g, errors = torch.Generator().manual_seed(seed), []
    for _ in range(DRAWS):
        posterior.draw(g)
        errors.append(float((model(x).argmax(1) != y).double().mean()))
    for layer in posterior.layers:
        layer.put(layer.mean)
    return float(np.mean(errors))


def compare(seed: int, rows: int) -> dict[str, object]:
    """Both posteriors for one training."""
    task = load("mnist")
    at = torch.randperm(len(task.x_train), generator=torch.Generator().manual_seed(seed))[:rows].numpy()
    x, y = torch.from_numpy(task.x_train[at]), torch.from_numpy(task.y_train[at])
    model = make_model("mlp:100-100", task.inputs, task.outputs, seed)
    assert isinstance(model, nn.Sequential)
    initial = {k: v.detach().clone() for k, v in model.state_dict().items()}
    fitted = pactrain.fit(model, (x, y), bound="kl", seed=seed, budget="30 epochs", progress=False)
    certified = min(s.value for s in fitted.certificate.statements if s.quantity == "0-1 error" and s.bound == "kl")
    layers = [Layer(m, initial, name) for name, m in model.named_children() if isinstance(m, nn.Linear)]
    look_at(fitted.posterior, layers, x, torch.Generator().manual_seed(seed))
    found: dict[str, object] = {"seed": seed, "rows": rows, "fit certifies": round(certified, 4)}
    for rotated in (False, True):
        ways = []
        for strength in STRENGTHS:
            posterior = Posterior(layers, rows, strength, rotated=rotated)
            error = error_of(model, posterior, x, y, seed)
            bound = kl_bound(error, posterior.kl, rows, DELTA)
            ways.append((bound, strength, posterior.kl, posterior.kl_of_means, error))
        bound, strength, kl, of_means, error = min(ways)
        found["rotated" if rotated else "each weight"] = {
            "bound": round(bound, 4), "kl": round(kl), "of it for the means": round(of_means), "error under noise": round(error, 4), "c": strength,
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    results = []
    for seed in map(int, options.seeds.split(",")):
        results.append(compare(seed, options.rows))
        print(json.dumps(results[-1]), flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
