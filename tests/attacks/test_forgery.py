"""Forgery: whoever can write the record can compute its digest; only making the certificate again finds out."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from pactrain import Certificate, PactrainError
from pactrain.certification.statement import PROVEN
from pactrain.cli.remake import ELSEWHERE, Remade, make_again
from pactrain.cli.trust import NOTHING, Outside
from pactrain.runtime.files import load_state
from tests.attacks.forging import changes, consistent, forged, leaves, pactrain, read, write_posterior

RUNS: dict[str, list[str]] = {
    "with a test set": ["--data", "iris", "--budget", "4 epochs"],
    "prior_data": ["--data", "digits", "--model", "mlp:16", "--bound", "kl", "--prior-data", "0.5", "--budget", "10 epochs"],
    "two stages": ["--data", "iris", "--preset", "authors", "--model", "mlp:8", "--budget", "6 epochs"],
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run folder of each kind."""
    root = tmp_path_factory.mktemp("runs")
    folders = {name: root / name.replace(" ", "_") for name in RUNS}
    for name, words in RUNS.items():
        assert pactrain("train", *words, "--out", folders[name]) == 0
    return folders


def judged(record: dict[str, Any], remade: Remade) -> tuple[bool, bool]:
    """What `pactrain verify certificate.json` and `pactrain verify RUN` say of a record."""
    try:
        stored = Certificate.from_dict(record)
        consistent_in_itself = not stored.problems()
    except PactrainError:
        return False, False
    return consistent_in_itself, consistent_in_itself and not remade.disagreements(stored)


def accepted(record: dict[str, Any], remade: Remade) -> bool:
    """True if `pactrain verify RUN` finds nothing wrong with a record."""
    return judged(record, remade)[1]


def unmasked(run: Path, outside: Outside = NOTHING) -> list[bool]:
    """For each change of a leaf of a run's record, none of which is accepted, whether it is consistent in itself."""
    remade, record = make_again(run, root=None, outside=outside), read(run)
    assert remade.tolerance == 0
    assert accepted(record, remade)
    found = [
        (path, value, *judged(forged(record, path, value), remade))
        for path, leaf in leaves(record)
        for value in changes(path, leaf)
    ]
    assert not [(path, value) for path, value, _, everything in found if everything]
    return [arithmetic for _, _, arithmetic, _ in found]


@pytest.mark.parametrize("name", RUNS)
def test_no_leaf_of_a_record_can_be_changed(name: str, runs: dict[str, Path]) -> None:
    found = unmasked(runs[name])
    assert len(found) > 200
    assert sum(found) > 100  # most forgeries are consistent in themselves: the arithmetic alone proves nothing


def test_the_runs_hold_what_is_to_be_forged(runs: dict[str, Path]) -> None:
    kinds = {name: {(s["bound"], s["when"]) for s in read(run)["statements"]} for name, run in runs.items()}
    assert ("test set", "end of training") in kinds["with a test set"]
    assert ("kl", "end of stage 1") in kinds["two stages"]
    certified = {s["bound"] for s in read(runs["prior_data"])["statements"] if s["label"] == "certified"}
    assert {"kl", "disintegrated", "counted rows", "test set"} <= certified
    assert all(("bernstein", "end of training") in found for found in kinds.values())


def test_on_another_machine_measured_numbers_may_differ_a_little_and_nothing_else(runs: dict[str, Path]) -> None:
    here = make_again(runs["with a test set"], root=None)
    elsewhere, record = Remade(here.certificate, ELSEWHERE, []), read(runs["with a test set"])
    for key, value in (("delta", 0.05005), ("n", record["n"] + 1), ("seed", 1), ("loss", "hinge")):
        assert not accepted(consistent(record | {key: value}), elsewhere), key
    share = next(iter(record["budget"]))
    assert not accepted(forged(record, ("budget", share), record["budget"][share] * 1.001), elsewhere)
    assert not accepted(forged(record, ("statements", 0, "inputs", "delta_draws"), 0.0017), elsewhere)
    kl = record["statements"][0]["inputs"]["kl"]
    assert accepted(forged(record, ("statements", 0, "inputs", "kl"), kl * (1 + 1e-7)), elsewhere)


def classic(record: dict[str, Any]) -> dict[str, Any]:
    """The audit's forgery: no divergence, a million rows, everything certified, nothing against it."""
    out: dict[str, Any] = json.loads(json.dumps(record))
    out |= {"caveats": [], "notes": [], "n": 10**6, "delta": 0.9}
    for s in out["statements"]:
        s["inputs"] |= {key: small for key, small in (("kl", 0.0), ("n", 10**6), ("errors", 0)) if key in s["inputs"]}
    out = consistent(out)
    for s in out["statements"]:
        proven = s["bound"] in PROVEN and s["value"] < s["constant_answer"]
        s["label"] = "certified" if proven else "heuristic"
    return consistent(out)


@pytest.mark.parametrize("what", ["classic", "labels", "caveats"])
def test_the_command_rejects_what_its_arithmetic_accepts(
    what: str, runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = read(runs["with a test set"])
    if what == "classic":
        forgery = classic(record)
    elif what == "labels":
        last = len(record["statements"]) - 1
        place = next(i for i in range(last) if record["statements"][i]["bound"] == "test set")
        forgery = forged(record, ("statements", place, "label"), "heuristic")
    else:
        forgery = consistent(record | {"caveats": []})
    run = tmp_path / "run"
    shutil.copytree(runs["with a test set"], run)
    (run / "certificate.json").write_text(json.dumps(forgery))
    capsys.readouterr()
    assert pactrain("verify", run / "certificate.json") == 0
    alone = " ".join(capsys.readouterr().out.split())
    assert "The arithmetic is consistent. Nothing else was checked" in alone
    assert "Verified" not in alone
    assert pactrain("verify", run) == 1
    again = " ".join(capsys.readouterr().out.split())
    assert "This certificate is not valid." in again
    assert pactrain("verify", run / "certificate.json", "--run", run) == 1


def edited(run: Path, *, tensors: dict[str, torch.Tensor] | None = None, **values: Any) -> None:
    """Write other tensors or values into a run's posterior."""
    kept, held = load_state(run / "posterior.safetensors")
    write_posterior(run, kept | (tensors or {}), held | values)


def test_a_folder_cannot_call_a_learned_prior_free(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs["with a test set"], run)
    edited(run, prior_fixed=True)
    remade = make_again(run, root=None)
    (run / "certificate.json").write_text(json.dumps(remade.certificate.to_dict()))  # the whole record follows
    assert any("fixed in advance" in line for line in remade.wrong)
    assert pactrain("verify", run) == 1


def test_a_folder_cannot_move_the_prior_to_the_posterior(runs: dict[str, Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs["two stages"], run)
    with safe_open(run / "model.safetensors", "pt") as file:
        trained = {f"prior_mean/{key}": file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    edited(run, tensors=trained)
    remade = make_again(run, root=None)
    assert any("not what seed 0 gives" in line for line in remade.wrong)
    (run / "certificate.json").write_text(json.dumps(remade.certificate.to_dict()))
    assert pactrain("verify", run) == 1
