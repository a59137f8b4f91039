"""Code, text encoders and data files that a run folder names, and the user's consent to use them.

A run folder may come from anybody, and whoever made it chose these names.  They are followed only if the user repeats them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pactrain.data.load import is_file_name
from pactrain.data.text import DEFAULT
from pactrain.runtime.errors import RunError


@dataclass(frozen=True)
class Outside:
    """What the user has repeated.

    model: FILE.py:FUNCTION, of which the network is built.
    data:  the file with the training data.
    trust: True to follow whatever the run folder names.
    """

    model: str | None = None
    data: Path | None = None
    trust: bool = False

    def network(self, config: dict[str, Any], run: Path) -> str:
        """The network to build; raises RunError if that would run code that the user has not named."""
        named = str(config["model"])
        if self.model is not None and ".py:" not in named:
            raise RunError(f"the network of {run} is {named}; --model goes with runs whose network is FILE.py:FUNCTION")
        if ".py:" not in named or self.trust or self.model is not None:
            return self.model or named
        raise RunError(
            f"{run} wants to import {named} to build its network, and to import a file is to run it. If you know what is in "
            f"it, repeat it with --model {named}; if the run folder is your own, --trust follows all that it names"
        )

    def encoders(self, config: dict[str, Any], run: Path) -> None:
        """Raise RunError if the run names a text encoder of its own and is not trusted."""
        texts = config["preprocess"].get("text", ())
        used = {str(column["encoder"]) for column in texts} | {
            str(v) for v in (config["data"].get("text") or {}).values()
        }
        if not self.trust and (others := sorted(used - {DEFAULT})):
            raise RunError(
                f"{run} wants to read texts with the encoder {others[0]}, a folder or a download that whoever made the run has "
                "chosen; if the run folder is your own, or you know that encoder, say --trust"
            )

    def data_name(self, config: dict[str, Any], run: Path) -> str:
        """The training data; raises RunError if it is a file that the user has not named."""
        named, test = str(config["data"]["name"]), config["data"]["test"]
        if test is not None and not self.trust:
            raise RunError(
                f"{run} names {test} as its test rows; if the run folder is your own, --trust follows all that it names"
            )
        if self.data is not None:
            return str(self.data)
        if self.trust or not is_file_name(named):
            return named
        raise RunError(
            f"{run} names {named} as its training data; a run folder could name any file of yours. Repeat it with "
            f"--data {named}, or wherever the same file is now; if the run folder is your own, --trust follows all that it names"
        )


NOTHING = Outside()
"""The user has repeated nothing."""
