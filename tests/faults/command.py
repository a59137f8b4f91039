"""`pactrain …` in this process."""

import contextlib
import io
from typing import Any

from pactrain.cli.main import main


def command(*words: Any) -> tuple[int, str]:
    """The exit code of a command, and all that it printed; whatever is no answer of ours is raised."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            return int(end.code or 0), " ".join(printed.getvalue().split())
    return 0, " ".join(printed.getvalue().split())
