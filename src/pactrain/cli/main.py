"""The command `pactrain`: finds the subcommand, runs it, and turns errors into one line and an exit code."""

import os
import sys
from io import TextIOWrapper
from typing import Annotated, Any, Union

import tyro

from pactrain.cli.card import Card
from pactrain.cli.certify import Certify
from pactrain.cli.compare import Compare
from pactrain.cli.data import ACTIONS, Data
from pactrain.cli.examples import ABOUT, overview, with_examples, wrapped
from pactrain.cli.groups import grouped, ungrouped
from pactrain.cli.predict import Predict
from pactrain.cli.report import Report
from pactrain.cli.reproduce import NAMES, Reproduce
from pactrain.cli.train import Train
from pactrain.cli.verify import Verify
from pactrain.runtime.errors import PactrainError, did_you_mean, printable

COMMANDS = {
    "train": Train,
    "predict": Predict,
    "report": Report,
    "card": Card,
    "compare": Compare,
    "certify": Certify,
    "verify": Verify,
    "data": Data,
    "reproduce": Reproduce,
}
"""In the order of the help: what everybody needs first."""


def parsed(words: list[str]) -> Any:
    """The command that some words ask for, with its options."""
    check_names(words)
    about = {name: " ".join((kind.__doc__ or "").split()) for name, kind in COMMANDS.items()}
    if words in ([], ["-h"], ["--help"]):
        print(overview(about))
        raise SystemExit(0)
    if words[0].startswith("-"):  # a shell's completion
        kinds = [
            Annotated[grouped(kind), tyro.conf.subcommand(name, description=about[name])]
            for name, kind in COMMANDS.items()
        ]
        return _read(Union[tuple(kinds)], "pactrain", wrapped(ABOUT), words)  # noqa: UP007 - made in a loop
    name, kind = words[0], COMMANDS[words[0]]
    return ungrouped(kind, _read(grouped(kind), f"pactrain {name}", with_examples(name, kind.__doc__ or ""), words[1:]))


def _read(kind: Any, prog: str, about: str, words: list[str]) -> Any:
    return tyro.cli(
        kind, prog=prog, description=about, args=words, config=(tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    )


def check_names(words: list[str]) -> None:
    """Refuse a command, or a part of one, that does not exist."""
    inner = {"data": ACTIONS, "reproduce": NAMES}
    for place, word in enumerate(words[:2]):
        known = inner.get(words[0], ()) if place else tuple(COMMANDS)
        if word.startswith("-") or not known:
            return
        if word not in known:
            asked, close = printable(" ".join(words[: place + 1])), did_you_mean(printable(word), known)
            raise PactrainError(f"there is no command {asked!r}{close}; use one of {', '.join(known)}")


def main(args: list[str] | None = None) -> None:
    """Run one command; errors end with one readable line and code 2 (130 after Ctrl-C)."""
    # Threads that spin while they wait take the processor from those they wait for; read once, when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a console that knows no "→" gets a "?" and not an error
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if args is None else args
    if words == ["--version"]:
        from importlib.metadata import version

        print(f"pactrain {version('pactrain')}")
        return
    try:
        code = parsed(words).run()
    except (PactrainError, OSError, MemoryError) as error:
        print(f"pactrain: {printable(str(error) or 'there is not enough memory')}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt as error:
        print(f"pactrain: {printable('; '.join(('interrupted', *getattr(error, '__notes__', ()))))}", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(code)


if __name__ == "__main__":
    main()
