"""No device is assumed: whoever makes a tensor says where, and draws on the CPU say so by their generator."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pactrain

MADE = {"zeros", "ones", "empty", "full", "tensor", "as_tensor", "arange", "linspace", "logspace", "eye", "randn", "rand",
        "randint", "randperm"}  # fmt: skip
ROOMS = ("runtime", "problem", "distributions", "bounds", "scan", "rules", "training", "certification")


def without_device(source: str) -> list[str]:
    """Calls that make a tensor on whatever device is torch's default."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in MADE
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "torch"
        and not {"device", "generator"} & {keyword.arg for keyword in call.keywords}
    ]


def test_every_tensor_is_made_somewhere() -> None:
    source = Path(pactrain.__file__).parent
    files = [file for room in ROOMS for file in sorted((source / room).rglob("*.py"))]
    found = {str(file.relative_to(source)): without_device(file.read_text()) for file in files}
    assert {name: calls for name, calls in found.items() if calls} == {}
    assert without_device("x = torch.zeros(3, dtype=d)") == ["torch.zeros(3, dtype=d)"]
    assert without_device("x = torch.zeros(3, device=d) + torch.randn(3, generator=g)") == []


@pytest.mark.parametrize("part", ["drawing", "steps", "scan", "measuring"])
def test_no_operation_mixes_devices(part: str) -> None:
    words = [sys.executable, "-W", "ignore", "-m", "tests.faults.other_device", part]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=300, check=False, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr[-2000:]
