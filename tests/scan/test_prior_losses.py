"""Losses of networks of the prior: together or one by one."""

from typing import Any

import numpy as np
import pytest
import torch

from pactrain import Posterior, Prior, estimate_moment
from tests.scan.small_scan import GAMMAS, LOG_STDS, scan
from tests.zoo import build, rows


def test_networks_measured_together_are_those_measured_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mlp", "tied", "batchnorm", "frozen"):
        _, together = scan(name)
        with monkeypatch.context() as patch:
            patch.setattr("pactrain.scan.prior_losses.EXAMPLES_AT_ONCE", 1)
            _, alone = scan(name)
        np.testing.assert_allclose(together.log_moments, alone.log_moments, rtol=1e-4, atol=1e-5)


def test_a_loss_that_cannot_be_batched_is_scanned_one_by_one() -> None:
    def loss(predict: Any, batch: Any) -> torch.Tensor:
        out = predict(batch[0])
        assert float(out.sum()) < 1e9  # a number, which a batch of networks does not have
        return torch.nn.functional.cross_entropy(out, batch[1], reduction="none")

    posterior = Posterior(build("mlp"), Prior(per="layer"))
    found = estimate_moment(posterior, rows(), loss, gammas=GAMMAS, log_stds=LOG_STDS, draws=4)
    np.testing.assert_allclose(found.log_moments, scan()[1].log_moments, rtol=1e-4, atol=1e-5)
