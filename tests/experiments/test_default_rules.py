"""Which runs are other runs once the default rules have other numbers."""

from pathlib import Path

import pytest

from pactrain.experiments.default_rules import rules_digest
from pactrain.experiments.image_tables import TABLES
from pactrain.rules import constants


def test_other_numbers_make_other_runs_of_the_defaults_alone(cifar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def identities() -> dict[str, str]:
        rules_digest.cache_clear()
        bounds, cnn = (TABLES[name]("cpu").cells() for name in ("table-bounds", "table-cnn"))
        wanted = {"auto": bounds["cnn9", "layer"], "authors": bounds["cnn9", "layer, authors"]}
        wanted |= {"clipped": bounds["cnn9", "quad"], "plain": cnn["Adam", "vgg13 cifar10"]}
        return {name: cell.run(0, {}).identity for name, cell in wanted.items()}

    before = identities()
    assert before == identities()
    monkeypatch.setattr(constants, "FURTHER_LENGTH", 0.5)
    after = identities()
    rules_digest.cache_clear()
    assert {name for name in before if before[name] != after[name]} == {"auto", "clipped"}
