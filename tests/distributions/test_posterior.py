"""The posterior over every network of the zoo: KL, draws, gradients, restoration."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import PactrainError, Posterior, Prior
from pactrain.distributions.gaussian import log_density_ratio
from tests.oracle import definitions
from tests.zoo import ZOO, build

CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}


def moved(name: str, per: Any = "layer", seed: int = 1) -> Posterior:
    """A posterior of the zoo away from its prior."""
    posterior = Posterior(build(name), Prior(per=per))
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in posterior.means():
            p.add_(0.1 * torch.randn(p.shape, generator=g))
        posterior.log_std.add_(0.3 * torch.randn(posterior.log_std.shape, generator=g))
        posterior.prior_log_std.add_(0.2 * torch.randn(posterior.prior_log_std.shape, generator=g))
    return posterior


def loss_of(name: str, predict: Any) -> Tensor:
    """Mean loss of the first batch of a zoo entry, by its own loss or cross-entropy."""
    from pactrain.problem.as_loss import as_loss

    data, loss = ZOO[name][1](), ZOO[name][2]
    batch = data if isinstance(data, tuple) else data[0]
    return as_loss(loss, batch)(predict, batch).mean()


@pytest.mark.parametrize("per", ["model", "layer", "tensor"])
@pytest.mark.parametrize("name", ZOO)
def test_kl_is_that_of_torch_distributions(name: str, per: str) -> None:
    posterior = moved(name, per)
    assert posterior.kl().item() == pytest.approx(definitions.kl(posterior), rel=1e-6)
    assert posterior.kl_by_group().sum().item() == pytest.approx(definitions.kl(posterior), rel=1e-6)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_divergence_inside_the_block_is_that_of_the_means(dtype: torch.dtype) -> None:
    posterior = Posterior(nn.Linear(3, 2).to(dtype))
    with torch.no_grad():
        posterior.means()[0].add_(0.1)
    before, noise = [p.detach().clone() for p in posterior.means()], posterior.fresh_noise()
    prior = posterior.prior_log_std.detach()
    wanted = posterior.kl_by_group(), posterior.log_ratio(noise, prior)
    with posterior.sampled():
        assert torch.equal(posterior.kl_by_group(), wanted[0])
        assert posterior.log_ratio(noise, prior) == wanted[1]
    assert all(torch.equal(p, b) for p, b in zip(posterior.means(), before, strict=True))


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


def test_layerwise_prior_with_equal_stds_is_the_scalar_prior() -> None:
    scalar, layer = Posterior(build("mlp"), Prior(per="model")), Posterior(build("mlp"), Prior(per="layer"))
    assert scalar.groups == ("model",)
    assert layer.groups == ("0", "2")
    with torch.no_grad():
        for posterior in (scalar, layer):
            posterior.log_std.sub_(0.5)
            for p in posterior.means():
                p.add_(0.05)
    assert scalar.kl().item() == pytest.approx(layer.kl().item(), rel=1e-9)


def test_own_groups_by_mapping_and_function() -> None:
    groups = {"ends": ["0.weight", "2.bias"], "rest": ["0.bias", "2.weight"]}
    by_mapping = moved("mlp", groups)
    assert by_mapping.groups == ("ends", "rest")
    assert by_mapping.kl().item() == pytest.approx(definitions.kl(by_mapping), rel=1e-6)
    by_function = Posterior(build("mlp"), Prior(per=lambda name: name.split(".")[1]))
    assert by_function.groups == ("weight", "bias")
    with pytest.raises(PactrainError, match=r"2\.weight"):
        Posterior(build("mlp"), Prior(per={"some": ["0.weight", "0.bias", "2.bias"]}))
    with pytest.raises(PactrainError, match="two prior groups"):
        Posterior(build("mlp"), Prior(per={"a": ["0.weight"], "b": ["0.weight"]}))
    with pytest.raises(PactrainError, match="not known"):
        Prior(per="neuron")  # type: ignore[arg-type]


def test_what_is_random() -> None:
    assert Posterior(build("frozen")).names == ("head.weight", "head.bias")
    assert "second.weight" not in Posterior(build("tied")).names
    assert Posterior(build("adapter")).names == ("down", "up")
    posterior = Posterior(build("mlp"))
    assert posterior.num_weights == sum(p.numel() for p in build("mlp").parameters())
    assert posterior.num_bytes == 8 * posterior.num_weights + 4 * len(posterior.groups)
    assert f"{posterior.num_bytes:,} bytes" in repr(posterior)


def test_the_draws_have_the_stated_mean_and_std() -> None:
    posterior = moved("mlp")
    draws = torch.stack([posterior.draw(torch.Generator().manual_seed(i))["2.bias"].detach() for i in range(4000)])
    std = posterior.log_std_of("2.bias").detach().exp()
    mean = posterior.model.get_parameter("2.bias").detach()
    assert ((draws.mean(0) - mean).abs() < 5 * std / 4000**0.5).all()
    assert (draws.std(0) / std - 1).abs().max() < 0.06


def test_log_density_ratio_averages_to_the_kl() -> None:
    posterior = moved("adapter").double()
    shift, ratios = posterior.mean_shift(), []
    for i in range(4000):
        noise = posterior.fresh_noise(torch.Generator().manual_seed(i))
        h = shift + noise * posterior.log_std.detach().exp()
        args = (h, noise, posterior.log_std.detach(), posterior.prior_log_std.detach(), posterior.group_slices)
        ratios.append(log_density_ratio(*args).item())
    values = torch.tensor(ratios)
    assert values.mean().item() == pytest.approx(posterior.kl().item(), abs=5 * values.std().item() / 4000**0.5)


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


def test_what_cannot_be_random_is_refused() -> None:
    with pytest.raises(PactrainError, match="nothing to train"):
        Posterior(nn.ReLU())
    with pytest.raises(PactrainError, match="lazy"):
        Posterior(nn.LazyLinear(3))
    broken = nn.Linear(2, 2)
    with torch.no_grad():
        broken.bias[0] = float("nan")
    with pytest.raises(PactrainError, match="'bias'"):
        Posterior(broken)
    with pytest.raises(PactrainError, match="positive"):
        Prior(std=0.0)


def test_a_divergence_taken_outside_the_block_has_the_same_gradient_inside() -> None:
    posterior = moved("mlp").double()
    wanted = torch.autograd.grad(posterior.kl(), posterior.log_std)[0]
    kl = posterior.kl()
    with posterior.sampled():
        kl.backward()
    torch.testing.assert_close(posterior.log_std.grad, wanted)
    posterior.zero_grad(set_to_none=True)
    with posterior.sampled():
        kl = posterior.kl()
    kl.backward()
    torch.testing.assert_close(posterior.log_std.grad, wanted)


def test_a_posterior_at_its_prior_has_no_divergence_however_many_weights() -> None:
    assert Posterior(nn.Linear(1000, 1000)).kl().item() == 0.0


class TwoNames(nn.Module):
    """A layer that is known by two names."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
        self.head = self.body[2]

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)  # type: ignore[no-any-return]


def test_a_layer_with_two_names_keeps_its_weights() -> None:
    model, x = TwoNames(), torch.randn(20, 3)
    own = model.head.weight
    Posterior(model)(x)
    assert isinstance(own, nn.Parameter)
    assert model.head.weight is own
    pactrain.fit(model, (x, (x[:, 0] > 0).long()), budget="2 epochs")
    assert model.head.weight is own
