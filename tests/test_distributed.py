"""The scan shared out among real processes."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, sys
import numpy as np, torch
import torch.distributed as dist
from pactrain import Posterior, estimate_moment
from tests.zoo import build, rows

torch.set_num_threads(1)
alone = estimate_moment(Posterior(build("mlp")), rows(), draws=3)
calls = []
dist.init_process_group("gloo")
shared = estimate_moment(Posterior(build("mlp")), rows(), draws=3, progress=calls.append)
np.testing.assert_array_equal(alone.log_moments, shared.log_moments)
np.testing.assert_array_equal(alone.means, shared.means)
assert len(calls) in (22, 23), len(calls)
print("rank", dist.get_rank(), "agrees")
dist.destroy_process_group()
"""


def test_two_processes_share_the_draws_and_get_the_same_table(tmp_path: Path) -> None:
    script = tmp_path / "scan.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)],
        env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("agrees") == 2  # the two ranks may write into each other's lines
