"""Tensors on a device that this machine does not have: any operation that mixes it with the CPU raises.

python -m tests.faults.other_device [part]

torch's FakeTensorMode computes shapes, types and devices, and no numbers.  `device="cuda"` does not do: without CUDA, indexing and
gradients of such tensors end the process.  torch's Python backend "other" has what these need.  Where the code wants a number, it
gets one: nothing is wrong with the data, and every amount is one half.  Loops that wait for a number to grow cannot be run so: a whole
training and a whole certificate are tried in their parts.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import pactrain
from pactrain import Posterior, Prior
from pactrain.certification.measures import measures_for
from pactrain.certification.noise_per_example import noisy_layers
from pactrain.certification.prior_check import prior_caveats
from pactrain.certification.risks import values_at_draws
from pactrain.problem.batches import TensorBatches
from pactrain.problem.constant_answer import best_constant
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.scores import evaluate
from pactrain.runtime.seeds import generator
from pactrain.scan.estimate import estimate_moment

CE = LOSSES["cross_entropy"]
aten = torch.ops.aten


class Other(FakeTensorMode):
    """Fake tensors whose numbers can be asked for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is aten._local_scalar_dense.default:
            kind = args[0].dtype
            return getattr(args[0], "said", True) if kind == torch.bool else 0.5 if kind.is_floating_point else 1
        if func in (aten.equal.default, aten.allclose.default):
            assert args[0].device == args[1].device
            return True
        if func is aten.nonzero.default:
            return args[0].new_empty((1, args[0].ndim), dtype=torch.int64)
        if func is aten.bincount.default:
            least = [*args, *(kwargs or {}).values()][1:]
            size = max(3, *(value for value in least if isinstance(value, int)), 0)
            return args[0].new_empty(size, dtype=torch.float64 if len(least) > 1 else torch.int64)
        out: Any = super().__torch_dispatch__(func, types, args, kwargs)
        if func.overloadpacket is aten.any:
            out.said = False
        return out


def _numpy(tensor: Tensor) -> Any:
    if tensor.device.type != "cpu":
        raise TypeError(f"numpy cannot read a tensor on {tensor.device}")
    return np.full(tuple(tensor.shape), 0.5)


def _new_tensor(like: Tensor, values: Any) -> Tensor:
    return _tensor(values, dtype=like.dtype, device=like.device)


def _tensor(values: Any, *, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
    if device is None or torch.device(device).type == "cpu":
        return _REAL_TENSOR(values, dtype=dtype, device=device)
    return torch.empty(np.shape(values), dtype=dtype or _REAL_TENSOR(values).dtype, device=device)


class _Generator:
    """Stands for a generator of a device; what is drawn there is not known anyway."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return _REAL()


_REAL, _REAL_TENSOR = torch.Generator, torch.tensor


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A layer that was built on the device: moving one there is what FakeTensorMode cannot do."""
    layer = nn.Linear(inputs, outputs, device="meta")
    layer.weight = nn.Parameter(torch.empty(outputs, inputs, device="other"))
    layer.bias = nn.Parameter(torch.empty(outputs, device="other"))
    return layer


def conv() -> nn.Conv2d:
    layer = nn.Conv2d(1, 3, 3, device="meta")
    layer.weight = nn.Parameter(torch.empty(3, 1, 3, 3, device="other"))
    layer.bias = nn.Parameter(torch.empty(3, device="other"))
    return layer


def network() -> nn.Module:
    return nn.Sequential(linear(4, 8), nn.ReLU(), linear(8, 3))


def data() -> tuple[Tensor, Tensor]:
    return torch.empty(20, 4, device="other"), torch.empty(20, dtype=torch.int64, device="other")


def drawing() -> None:
    posterior = Posterior(network(), Prior(std=0.1))
    x, y = data()
    assert posterior(x).device.type == posterior.kl_by_group().device.type == "other"
    with posterior.sampled(torch.Generator(device="other")) as model, torch.no_grad():
        assert CE(model, (x, y)).device.type == "other"


def steps() -> None:
    posterior, (x, y) = Posterior(network(), Prior(std=0.1)), data()
    bound = pactrain.bounds.Classic(n=20, delta=0.05)
    bound(CE(posterior, (x, y)), posterior).total.backward()
    assert posterior.log_std.grad is not None
    assert posterior.log_std.grad.device.type == "other"


def scan() -> None:
    posterior = Posterior(network(), Prior(std=0.1))
    grid = np.array([0.5, 1.0])
    estimate_moment(
        posterior,
        TensorBatches(data(), 10),
        CE,
        gammas=grid,
        log_stds=[-3.0, -2.0],
        draws=2,
        max_examples=10,
        n=20,
        seed=0,
    )


def measuring() -> None:
    for net, shape in ((network(), (4,)), (nn.Sequential(conv(), nn.Flatten(), linear(3 * 36, 3)), (1, 8, 8))):
        posterior = Posterior(net, Prior(std=0.1))
        batches = TensorBatches((torch.empty(20, *shape, device="other"), data()[1]), 10)
        evaluate(posterior.model, batches.ordered(), CE)
        for layers in ([], noisy_layers(posterior)):
            source = generator(posterior.log_std.device, 0, "certify")
            losses, scores = values_at_draws(posterior, next(batches.ordered()), CE, layers, source)
            for measure in measures_for(CE, 3):
                assert measure(losses, scores).device.type == "other"
        best_constant(batches, CE)
        prior_caveats(posterior, batches, CE, None, seed=0)


PARTS: dict[str, Callable[[], None]] = {
    "drawing": drawing, "steps": steps, "scan": scan, "measuring": measuring,
}  # fmt: skip


def main() -> None:
    """Carry out the parts that are named, or all."""
    _setup_privateuseone_for_python_backend("other")
    torch.Generator, torch.tensor = _Generator, _tensor  # type: ignore[misc, assignment]
    FakeTensor.numpy, FakeTensor.new_tensor = _numpy, _new_tensor  # type: ignore[assignment, method-assign]
    for name in sys.argv[1:] or PARTS:
        with Other(allow_non_fake_inputs=False):
            PARTS[name]()
    os._exit(0)  # the gradient's threads of such a backend do not survive the interpreter's end


if __name__ == "__main__":
    main()
