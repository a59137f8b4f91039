"""The posterior over every network of the zoo: KL, draws, gradients, restoration."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from pactrain import PactrainError, Posterior
from tests.distributions.small_posteriors import CLOSE, loss_of, moved
from tests.oracle import definitions
from tests.zoo import ZOO, build


@pytest.mark.parametrize("name", ZOO)
def test_sampled_and_functional_draws_have_equal_losses_and_gradients(name: str) -> None:
    posterior = moved(name).eval()
    loss_of(name, lambda *a, **k: posterior(*a, generator=torch.Generator().manual_seed(5), **k)).backward()
    wanted = {n: None if p.grad is None else p.grad.clone() for n, p in posterior.named_parameters()}
    posterior.zero_grad(set_to_none=True)
    with posterior.sampled(torch.Generator().manual_seed(5)) as model:
        loss_of(name, model).backward()
    for n, p in posterior.named_parameters():
        want = wanted[n]
        if want is None or not want.any():
            assert p.grad is None or not p.grad.any(), n
        else:
            assert p.grad is not None
            torch.testing.assert_close(p.grad, want, **CLOSE)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", ["mlp", "tied", "unused", "graph"])
def test_objective_gradients_are_those_of_plain_autograd(name: str, inside: bool) -> None:
    posterior = moved(name).double()
    batch_loss = lambda predict: loss_of_double(name, predict)  # noqa: E731
    reference = copy.deepcopy(posterior)
    draw = reference.draw(torch.Generator().manual_seed(3))
    loss = batch_loss(lambda *a, **k: torch.func.functional_call(reference.model, draw, a, k))
    means, log_std, prior = definitions.autograd_step(reference, loss, n=40, nats=3.0, gamma=7.0)
    if inside:
        with posterior.sampled(torch.Generator().manual_seed(3)) as model:
            (batch_loss(model) + (3.0 + posterior.kl()) / (7.0 * 40)).backward()
    else:
        loss = batch_loss(lambda *a, **k: posterior(*a, generator=torch.Generator().manual_seed(3), **k))
        (loss + (3.0 + posterior.kl()) / (7.0 * 40)).backward()
    for p, want in zip(posterior.means(), means, strict=True):
        assert p.grad is not None
        torch.testing.assert_close(p.grad, want)
    torch.testing.assert_close(posterior.log_std.grad, log_std)
    torch.testing.assert_close(posterior.prior_log_std.grad, prior)


def loss_of_double(name: str, predict: Any) -> Tensor:
    """The same loss with inputs in float64."""

    def widened(*args: Any, **kwargs: Any) -> Any:
        wide = lambda v: v.double() if torch.is_tensor(v) and v.is_floating_point() else v  # noqa: E731
        return predict(*map(wide, args), **{k: wide(v) for k, v in kwargs.items()})

    return loss_of(name, widened)


@pytest.mark.parametrize("name", ZOO)
def test_weights_come_back_bitwise_whatever_happens_in_the_block(name: str) -> None:
    posterior = moved(name)
    before = {k: v.clone() for k, v in posterior.model.state_dict().items()}
    for error in (None, ValueError, KeyboardInterrupt):
        try:
            with posterior.sampled():
                assert any(not torch.equal(p, before[n]) for n, p in posterior.model.named_parameters())
                if error is not None:
                    raise error
        except (ValueError, KeyboardInterrupt):
            pass
        assert all(torch.equal(v, before[k]) for k, v in posterior.model.state_dict().items())
    assert not any(p._backward_hooks for p in posterior.means())


def test_backward_after_the_block_is_an_error_not_a_wrong_gradient() -> None:
    posterior = moved("mlp")
    with posterior.sampled() as model:
        loss = loss_of("mlp", model)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_blocks_do_not_nest_and_forward_inside_uses_the_draw_in_place() -> None:
    posterior = moved("mlp")
    x = torch.ones(2, 6)
    with posterior.sampled():
        assert torch.equal(posterior(x), posterior.model(x))
        with pytest.raises(PactrainError, match="nested"), posterior.sampled():
            pass
    assert not torch.equal(posterior(x), posterior.model(x))


def test_gradients_accumulate_over_blocks() -> None:
    posterior = moved("mlp")
    parts = []
    for seed in (1, 2):
        posterior.zero_grad(set_to_none=True)
        with posterior.sampled(torch.Generator().manual_seed(seed)) as model:
            loss_of("mlp", model).backward()
        parts.append([p.grad.clone() for p in posterior.parameters() if p.grad is not None])
    posterior.zero_grad(set_to_none=True)
    for seed in (1, 2):
        with posterior.sampled(torch.Generator().manual_seed(seed)) as model:
            loss_of("mlp", model).backward()
    both = [p.grad for p in posterior.parameters() if p.grad is not None]
    for got, a, b in zip(both, *parts, strict=True):
        torch.testing.assert_close(got, a + b, **CLOSE)


def test_the_draws_have_the_stated_mean_and_std() -> None:
    posterior = moved("mlp")
    draws = torch.stack([posterior.draw(torch.Generator().manual_seed(i))["2.bias"].detach() for i in range(4000)])
    std = posterior.log_std_of("2.bias").detach().exp()
    mean = posterior.model.get_parameter("2.bias").detach()
    assert ((draws.mean(0) - mean).abs() < 5 * std / 4000**0.5).all()
    assert (draws.std(0) / std - 1).abs().max() < 0.06


def test_deepcopy_and_float64() -> None:
    posterior = moved("mlp")
    twin = copy.deepcopy(posterior)
    with torch.no_grad():
        twin.log_std.zero_()
        twin.means()[0].zero_()
    assert posterior.log_std.any()
    assert posterior.means()[0].any()
    wide = moved("mlp").double()
    assert wide(torch.ones(1, 6).double()).dtype == torch.float64
    assert wide.kl().item() == pytest.approx(definitions.kl(wide), rel=1e-12)


@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf"
)  # dynamo looks at drawn weights
def test_a_compiled_model_draws_and_differentiates_like_a_plain_one() -> None:
    x, g = torch.ones(4, 6), 9
    plain, model = moved("mlp"), build("mlp")
    posterior = Posterior(torch.compile(model, backend="aot_eager"))  # type: ignore[arg-type]
    with torch.no_grad():
        for mine, other in zip(posterior.means(), plain.means(), strict=True):
            mine.copy_(other)
        posterior.log_std.copy_(plain.log_std)
    with plain.sampled(torch.Generator().manual_seed(g)) as network:
        network(x).sum().backward()
    with posterior.sampled(torch.Generator().manual_seed(g)) as network:
        network(x).sum().backward()
    torch.testing.assert_close(posterior.log_std.grad, plain.log_std.grad, **CLOSE)
    out = posterior(x, generator=torch.Generator().manual_seed(g))
    torch.testing.assert_close(out, plain(x, generator=torch.Generator().manual_seed(g)), **CLOSE)
