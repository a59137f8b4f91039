"""The trained network leaves as what it came in as: plain PyTorch, exported, compiled, for ONNX, quantised."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pactrain
from tests.zoo import rows


def network() -> nn.Sequential:
    """An ordinary network."""
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Path]:
    """A trained network and its run folder."""
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("export") / "run"
    return pactrain.fit(network(), rows(200), out=out, budget="40 epochs").model.eval(), out


@pytest.fixture
def x() -> Tensor:
    return rows(50, seed=1)[0]


def same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_state_dict_loads_into_a_fresh_plain_network(trained: tuple[nn.Module, Path], x: Tensor) -> None:
    fresh = network()
    fresh.load_state_dict(trained[0].state_dict())
    assert torch.equal(fresh(x), trained[0](x))
    assert not trained[0]._forward_hooks
    assert all(not p._backward_hooks and p.is_leaf for p in trained[0].parameters())


PLAIN = """
import json, sys, torch
from safetensors.torch import load_file
network = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
network.load_state_dict(load_file(sys.argv[1]))
assert not any(name.startswith("pactrain") for name in sys.modules)
print(json.dumps(network(torch.ones(1, 6)).tolist()))
"""


def test_the_run_folder_is_read_without_pactrain(trained: tuple[nn.Module, Path]) -> None:
    command = [sys.executable, "-c", PLAIN, str(trained[1] / "model.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    same(torch.tensor(json.loads(done.stdout)), trained[0](torch.ones(1, 6)))


def test_torch_export(trained: tuple[nn.Module, Path], x: Tensor, tmp_path: Path) -> None:
    program = torch.export.export(trained[0], (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.export.save(program, tmp_path / "network.pt2")
    again = torch.export.load(tmp_path / "network.pt2").module()
    same(again(x[:7]), trained[0](x[:7]))


def test_torch_compile(trained: tuple[nn.Module, Path], x: Tensor) -> None:
    same(torch.compile(trained[0], backend="aot_eager")(x), trained[0](x))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
def test_torch_compile_by_its_default_compiler(trained: tuple[nn.Module, Path], x: Tensor) -> None:
    same(torch.compile(trained[0])(x), trained[0](x))


def test_a_compiled_network_is_trained_and_saved_under_its_own_names(tmp_path: Path) -> None:
    compiled = torch.compile(network(), backend="aot_eager")
    pactrain.fit(compiled, rows(60), out=tmp_path / "run", budget="2 epochs")  # type: ignore[arg-type]
    fresh, x = network(), rows()[0]
    from safetensors.torch import load_file

    fresh.load_state_dict(load_file(tmp_path / "run" / "model.safetensors"))
    same(fresh(x), compiled(x))


@pytest.mark.filterwarnings("ignore")  # the exporter's own
def test_onnx_gives_the_same_outputs(trained: tuple[nn.Module, Path], x: Tensor, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime onnxscript")
    pytest.importorskip("onnxscript", reason="pip install onnxscript")
    path = tmp_path / "network.onnx"
    dynamic = ({0: torch.export.Dim("rows")},)
    torch.onnx.export(trained[0], (x,), path, input_names=["x"], dynamic_shapes=dynamic, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {"x": x[:7].numpy()})
    np.testing.assert_allclose(output, trained[0](x[:7]).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # torch means to move quantisation to torchao
def test_dynamic_quantisation_keeps_the_answers(trained: tuple[nn.Module, Path], x: Tensor) -> None:
    small = torch.ao.quantization.quantize_dynamic(trained[0], {nn.Linear}, dtype=torch.qint8)
    assert isinstance(small[0], torch.ao.nn.quantized.dynamic.Linear)
    exact, rounded = trained[0](x), small(x)
    assert 0 < float((exact - rounded).abs().max()) < 0.1 * float(exact.abs().max())
    assert (exact.argmax(1) == rounded.argmax(1)).double().mean() > 0.9
