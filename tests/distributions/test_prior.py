"""Groups of the prior, and the stds that they share."""

import pytest
import torch

from pactrain import PactrainError, Posterior, Prior
from tests.distributions.small_posteriors import moved
from tests.oracle import definitions
from tests.zoo import build


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
