"""`pactrain …`."""

import os
import sys
from typing import Annotated

import tyro

from pactrain.cli.certify import Certify
from pactrain.cli.compare import Compare
from pactrain.cli.data import Data
from pactrain.cli.predict import Predict
from pactrain.cli.report import Report
from pactrain.cli.reproduce import Reproduce
from pactrain.cli.train import Train
from pactrain.cli.verify import Verify
from pactrain.runtime.errors import PactrainError

Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Certify, tyro.conf.subcommand("certify")]
    | Annotated[Verify, tyro.conf.subcommand("verify")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Data, tyro.conf.subcommand("data")]
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
    command = tyro.cli(
        Command,
        prog="pactrain",
        description="Train any network by minimising a PAC-Bayes bound: nothing to tune, and a certificate at the end.",
        args=words,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    try:
        code = command.run()
    except PactrainError as error:
        print(f"pactrain: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("pactrain: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    raise SystemExit(code)


if __name__ == "__main__":
    main()
