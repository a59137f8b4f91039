"""Names that come from files and users are shown as they are and change nothing else on the page."""

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from pactrain.certification.statement import Caveat
from pactrain.report.page import page
from pactrain.report.read import Run, read_run
from tests.report.outline import HOSTILE, Outline

PLACES = (
    "run", "data", "model", "group", "loss", "bound", "rules", "prior", "version", "target", "kind", "class", "key",
    "note", "caveat", "remark", "quantity", "vacuous", "moment", "learned",
)  # fmt: skip
"""Where a report shows a text that it did not write itself."""


def named(run: Run, name: str) -> Run:
    """The run with its every text replaced by the place's own name and `name`."""
    at = {place: f"{place} {name}" for place in PLACES}
    groups = dict(zip(run.config["groups"], (f"{at['group']} {i}" for i in range(9)), strict=False))
    history = [
        r | {key: {groups[g]: std for g, std in r[key].items()} for key in ("prior_std", "posterior_std")}
        for r in run.history
    ]
    config = (
        run.config
        | {
            "data": {"name": at["data"]},
            "model": at["model"],
            "groups": {groups[g]: size for g, size in run.config["groups"].items()},
            "preprocess": {
                "numeric": [],
                "categorical": [],
                "target": at["target"],
                "kind": at["kind"],
                "classes": [at["class"]],
            },
            "rules": run.config["rules"] | {"name": at["rules"]},
            "versions": {at["version"]: at["version"]},
            at["key"]: at["key"],
        }
        | {key: at[key] for key in ("loss", "bound", "prior")}
    )
    assert run.certificate is not None
    first, second, *others = run.certificate.statements
    certificate = replace(
        run.certificate,
        statements=(
            replace(first, quantity=at["quantity"], label="estimated", constant_answer=None),
            replace(second, quantity=at["vacuous"], constant_answer=second.value),
            *(replace(s, when=at["moment"], prior=at["learned"]) for s in others),
        ),
        caveats=(Caveat(at["caveat"]),),
        notes=(at["remark"],),
        digest="",
    )
    metrics = run.metrics | {"notes": [at["note"]]}
    return replace(run, name=at["run"], config=config, history=history, certificate=certificate, metrics=metrics)


@pytest.mark.parametrize("runs", [1, 2])
def test_hostile_texts_are_shown_and_change_nothing(folder: Path, runs: int) -> None:
    run = read_run(folder / "classes")
    text, plain = (page([named(run, name)] * runs) for name in (HOSTILE, "x" * len(HOSTILE)))
    found, expected = Outline(text), Outline(plain)
    assert found.tags == expected.tags
    assert (found.ids, found.names) == (expected.ids, expected.names)
    shown = unescape(text).replace('\\"', '"')  # JSON writes quotes so
    for place in PLACES:
        assert f"{place} {HOSTILE}" in shown or f"{place.capitalize()} {HOSTILE}" in shown, place


def test_texts_of_a_real_run(pages: dict[str, str]) -> None:
    text = pages["hostile"]
    assert "<script" not in text
    assert unescape(text).count(HOSTILE) >= 3
