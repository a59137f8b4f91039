"""What is known of data and network before training."""

from pathlib import Path

import pactrain
from pactrain.certification.before_training import Described
from pactrain.certification.statement import Caveat
from pactrain.runtime.untrusted import read_json
from tests.zoo import build, rows


def test_described_data_brings_its_caveats_and_its_configuration(tmp_path: Path) -> None:
    mild = Caveat("scaled by the same rows", "estimated")
    described = Described(rows(), caveats=["one patient", mild], config={"data": {"name": "flowers"}})
    result = pactrain.fit(build("mlp"), described, budget="1 epoch", out=tmp_path / "run")
    assert result.certificate.caveats == (Caveat("one patient"), mild)
    assert result.config["data"] == read_json(tmp_path / "run" / "config.json")["data"] == {"name": "flowers"}
    assert result.metrics["certificate"]["caveats"] == []  # those that the run found by itself
    plain = pactrain.fit(build("mlp"), rows(), budget="1 epoch")
    assert plain.certificate.caveats == ()
    assert plain.certificate.hashes == result.certificate.hashes


def test_described_data_is_described_once() -> None:
    described = Described([1], config={"a": 2})
    assert Described.of(described) is described
    assert Described.of([1]) == Described([1])
