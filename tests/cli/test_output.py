"""Where commands print."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import ENV


def test_a_log_file_takes_no_bar_even_where_colours_are_forced(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pactrain", "train", "--data", "iris", "--budget", "3 epochs"]
    forced = ENV | {"FORCE_COLOR": "1", "TERM": os.environ.get("TERM", "xterm")}
    done = subprocess.run(command, cwd=tmp_path, env=forced, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "Reading iris …"
    assert len([line for line in done.stdout.splitlines() if line.startswith("  accuracy ")]) == 1
