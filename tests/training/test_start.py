"""Where training starts."""

import numpy as np
import pytest

import pactrain
from pactrain import PactrainError, Posterior
from pactrain.rules.presets import AUTHORS, PAPER, PRESETS
from pactrain.rules.start_values import start_std
from tests.zoo import build, rows, weights


def test_presets_start_where_they_say() -> None:
    model = build("mlp")
    scale = float(weights(model).abs().mean())
    starts = {}
    for name, rules in PRESETS.items():
        posterior = Posterior(build("mlp"))
        moment = pactrain.estimate_moment(posterior, rows(), draws=3)
        starts[name] = start_std(rules, posterior, rules.bound(48, 0.05, moment, 2))
        if name == "auto":
            at_start = rules.bound(48, 0.05, moment, 2).at_start()
            chosen = int(np.argmin(np.abs(np.exp(moment.log_stds) - starts[name])))
            assert at_start[chosen] <= 1.02 * at_start.min()
            assert (at_start[chosen + 1 :] > 1.02 * at_start.min()).all()
    assert starts["authors"] == pytest.approx(scale)
    assert starts["paper"] == pytest.approx(scale**0.5)
    assert AUTHORS.bound(48, 0.05, moment, 4).nats == 22.0
    assert PAPER.bound(48, 0.05, moment, 4).nats == pytest.approx(np.log(20))
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), preset="best")
    with pytest.raises(PactrainError, match="not known"):
        pactrain.fit(build("mlp"), rows(), bound="best")
