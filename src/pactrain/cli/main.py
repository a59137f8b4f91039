"""`pactrain …`."""

import os
import sys
from typing import Annotated, Any, Union

import tyro

from pactrain.cli.certify import Certify
from pactrain.cli.compare import Compare
from pactrain.cli.data import Data
from pactrain.cli.examples import with_examples
from pactrain.cli.predict import Predict
from pactrain.cli.report import Report
from pactrain.cli.reproduce import Reproduce
from pactrain.cli.train import Train
from pactrain.cli.verify import Verify
from pactrain.runtime.errors import PactrainError, did_you_mean, printable

COMMANDS = {
    "train": Train,
    "predict": Predict,
    "report": Report,
    "compare": Compare,
    "certify": Certify,
    "verify": Verify,
    "data": Data,
    "reproduce": Reproduce,
}
"""In the order of the help: what everybody needs first."""


def _commands(asked: str) -> Any:
    """All commands as tyro takes them; the one that is asked for with its examples."""
    about = {name: " ".join((kind.__doc__ or "").split()) for name, kind in COMMANDS.items()}
    about |= {name: with_examples(name, about[name]) for name in COMMANDS if name == asked}
    kinds = [Annotated[kind, tyro.conf.subcommand(name, description=about[name])] for name, kind in COMMANDS.items()]
    return Union[tuple(kinds)]  # noqa: UP007 - made in a loop


def parsed(words: list[str]) -> Any:
    """The command that some words ask for, with its options."""
    return tyro.cli(
        _commands(words[0] if words else ""),
        prog="pactrain",
        description="Train any network by minimising a PAC-Bayes bound: nothing to tune, and a certificate at the end.",
        args=words,
        config=(tyro.conf.OmitArgPrefixes,),
    )


def main(args: list[str] | None = None) -> None:
    """Run one command; errors end with one readable line and code 2 (130 after Ctrl-C)."""
    # Threads that spin while they wait take the processor from those they wait for; read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    words = sys.argv[1:] if args is None else args
    if words == ["--version"]:
        from importlib.metadata import version

        print(f"pactrain {version('pactrain')}")
        return
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        asked = printable(words[0])
        known = ", ".join(COMMANDS)
        print(
            f"pactrain: there is no command {asked!r}{did_you_mean(asked, COMMANDS)}; use one of {known}",
            file=sys.stderr,
        )
        raise SystemExit(2)
    command = parsed(words)
    try:
        code = command.run()
    except (PactrainError, OSError, MemoryError) as error:
        print(f"pactrain: {printable(str(error) or 'there is not enough memory')}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("pactrain: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(code)


if __name__ == "__main__":
    main()
