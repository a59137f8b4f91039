"""Somebody else's run folder: it runs nothing, follows nothing, and its weights are those that it was written with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pactrain.runtime.files import load_state, save_state
from tests.faults.command import command
from tests.faults.conftest import Copy

COMMANDS = ("predict", "certify", "verify")


def words_of(name: str, run: Path, made: Path) -> list[Any]:
    """A command about a run, as short as it can be."""
    rows = [made / "table.csv"] if name == "predict" else []
    return [name, run, *rows, *(["--draws", "3"] if name == "certify" else [])]


@pytest.mark.parametrize("name", COMMANDS)
def test_code_is_imported_only_if_the_user_repeats_it(name: str, made: Path) -> None:
    words, mark = words_of(name, made / "code", made), made / "imported"
    code, said = command(*words)
    assert code == 2
    assert "to import a file is to run it" in said
    assert not mark.exists()
    for more in (("--model", f"{made / 'net.py'}:small"), ("--trust",)):
        code, said = command(*words, *more)
        assert mark.exists(), said
        assert "to import" not in said
        mark.unlink()


@pytest.mark.parametrize("name", ["report", "verify"])
def test_no_code_runs_for_a_report_or_a_file(name: str, made: Path) -> None:
    what = made / "code" if name == "report" else made / "code" / "certificate.json"
    assert command(name, what)[0] == 0
    assert not (made / "imported").exists()


@pytest.mark.parametrize("name", ["certify", "verify"])
def test_a_data_file_is_read_only_if_the_user_repeats_it(name: str, made: Path, copy: Copy) -> None:
    run = copy("table")
    words = words_of(name, run, made)
    code, said = command(*words)
    assert code == 2
    assert "could name any file of yours" in said
    assert command(*words, "--data", made / "table.csv")[0] == 0
    assert command(*words, "--trust")[0] == 0
    change(run / "config.json", ("data", "name"), str(made / "iris" / "config.json"))
    assert command(*words)[0] == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_an_encoder_of_the_runs_own_is_not_loaded(name: str, made: Path, copy: Copy) -> None:
    run = copy("table")
    text = [{"name": "x", "encoder": "somebody/model", "width": 3}]
    change(run / "config.json", ("preprocess", "text"), text)
    code, said = command(*words_of(name, run, made))
    assert code == 2
    assert "somebody/model" in said


def change(file: Path, path: tuple[Any, ...], value: Any) -> None:
    """Write another value into a JSON file."""
    document = json.loads(file.read_text())
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    file.write_text(json.dumps(document))


def _swapped(file: Path) -> None:
    tensors, values = load_state(file)
    save_state(file, {k: v + 1 if k in ("0.weight", "log_std/0.weight") else v for k, v in tensors.items()}, values)


def _flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-7] ^= 1
    file.write_bytes(content)


SPOILED: dict[str, Callable[[Path], Any]] = {
    "swapped": _swapped,
    "one bit": _flipped,
    "cut off": lambda file: file.write_bytes(file.read_bytes()[:-5]),
    "empty": lambda file: file.write_bytes(b""),
    "removed": Path.unlink,
}


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.parametrize("file", ["model.safetensors", "posterior.safetensors"])
def test_weights_are_those_that_the_run_wrote(how: str, file: str, copy: Copy, made: Path) -> None:
    run = copy("table")
    SPOILED[how](run / file)
    for name in COMMANDS:
        code, said = command(*words_of(name, run, made), *([] if name == "predict" else ["--trust"]))
        assert code == 2
        assert file in said, said


NOTED: dict[str, tuple[Any, ...]] = {
    "draws": (10**12, -1, "x", 1.5),
    "caveats": ([{"reason": "x", "no": 1}], [3]),
    "objective": ({"a": "b"}, {"risk": "x", "kl_term": 0, "complexity": 0, "eta": 0}),
    "target_unit": ("x", 1e300, 0),
    "rows": ([1, 2, 3], ["x", 3], [3, 75], 7),
    "blocks": ([[5, 9]], [[10**12, 1]], [["x", 1]], [3]),
    "levels": ([{}], ["x"], 3),
    "remarks": (["\x1b[31m"], [3]),
    "test": (False,),
    "test_doubts": ([3], ["x"]),
}


@pytest.mark.filterwarnings("ignore:The loss of the best constant answer")
@pytest.mark.parametrize(("fact", "value"), [(fact, value) for fact, values in NOTED.items() for value in values])
def test_what_a_run_says_of_its_training_is_checked(fact: str, value: Any, copy: Copy) -> None:
    run = copy("iris")
    change(run / "metrics.json", ("certificate", fact), value)
    code, said = command("verify", run)
    assert code in (1, 2)
    assert "metrics.json" in said or "not valid" in said
    assert "\x1b" not in said
    assert "Traceback" not in command("certify", run, "--draws", "2")[1]


def test_a_network_that_the_weights_cannot_fill_is_not_built(copy: Copy, made: Path) -> None:
    run = copy("iris")
    change(run / "config.json", ("model",), "mlp:1000000-1000000")
    code, said = command("predict", run, made / "table.csv")
    assert code == 2
    assert "does not hold the" in said


def test_a_network_whose_source_has_changed(copy: Copy, made: Path, tmp_path: Path) -> None:
    source = tmp_path / "net.py"
    source.write_text((made / "net.py").read_text().replace("outputs))", "outputs), nn.Tanh())"))
    code, said = command("certify", copy("code"), "--model", f"{source}:small")
    assert code == 2
    assert "source has changed" in said


def test_tensors_have_the_digest_of_every_bit(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0), "b": torch.zeros(0), "c": torch.tensor(True)}
    digest = save_state(tmp_path / "x", tensors, {"values": {1: 2.5, 10: None}})
    kept, values = load_state(tmp_path / "x", digest=digest)
    assert values == {"values": {"1": 2.5, "10": None}}
    assert all(torch.equal(kept[k], v) for k, v in tensors.items())
    tensors["a"][2] = float(torch.nextafter(tensors["a"][2], torch.tensor(9.0)))
    assert save_state(tmp_path / "y", tensors, {"values": {1: 2.5, 10: None}}) != digest
