"""Three examples of each command, which its help shows."""

from collections.abc import Mapping
from shutil import get_terminal_size
from textwrap import fill

ABOUT = "Train a network without tuning anything, and know how good it is on new data."

START = {
    "pactrain train": "an example: handwritten digits",
    "pactrain train --data my.csv --target column": "a table of your own",
    "pactrain predict runs/my new.csv": "answers for new rows",
}
"""What somebody types first, with what it does."""

EXAMPLES = {
    "train": (
        "pactrain train",
        "pactrain train --data houses.csv --target price",
        "pactrain train --data reviews.csv --target rating --text review --budget 5m",
    ),
    "predict": (
        "pactrain predict runs/houses new.csv",
        "pactrain predict runs/houses new.csv --out answers.csv",
        "pactrain predict runs/houses new.csv --json -",
    ),
    "report": (
        "pactrain report runs/houses",
        "pactrain report runs/houses runs/houses-2 --out compared.html",
        "pactrain report runs/houses --figures figures --format pdf",
    ),
    "card": (
        "pactrain card runs/houses",
        "pactrain card runs/houses --out README.md",
        "pactrain card runs/houses --json -",
    ),
    "compare": (
        "pactrain compare",
        "pactrain compare --data houses.csv --target price --seeds 5",
        "pactrain compare --data mnist --model cnn9 --workers 2",
    ),
    "certify": (
        "pactrain certify --explain runs/houses",
        "pactrain certify runs/houses --draws 10000 --delta 0.01",
        "pactrain certify runs/houses --test --json certificate.json",
    ),
    "verify": (
        "pactrain verify runs/houses",
        "pactrain verify certificate.json",
        "pactrain verify certificate.json --run runs/houses",
    ),
    "data": (
        "pactrain data list",
        "pactrain data where mnist",
        "pactrain data fetch cifar10",
    ),
    "reproduce": (
        "pactrain reproduce list",
        "pactrain reproduce table-gnn",
        "pactrain reproduce table-cnn --scale cpu --workers 2",
    ),
}


def wrapped(text: str) -> str:
    """A text in lines as wide as the terminal, broken between words; tyro keeps lines that begin with a space."""
    return fill(" ".join(text.split()), get_terminal_size().columns, subsequent_indent="  ", break_on_hyphens=False)


def overview(about: Mapping[str, str]) -> str:
    """The first screen: what this is, where to start, and every command in a sentence.

    Args:
        about: What each command does; its first sentence is shown.
    """
    width, first = get_terminal_size().columns, max(map(len, START)) + 4
    start = [
        f"  {line:<{first}}{what}" if first + len(what) + 2 <= width else f"  {line}" for line, what in START.items()
    ]
    indent = " " * (max(map(len, about)) + 4)
    commands = [
        fill(f"  {name:<{len(indent) - 2}}{what.partition('. ')[0].rstrip('.')}", width, subsequent_indent=indent)
        for name, what in about.items()
    ]
    more = wrapped("pactrain COMMAND --help lists what a command takes, with examples.")
    return "\n".join(
        [
            wrapped(f"pactrain: {ABOUT[0].lower()}{ABOUT[1:]}"),
            "",
            "Start here:",
            *start,
            "",
            "Commands:",
            *commands,
            "",
            more,
        ]
    )


def with_examples(name: str, about: str) -> str:
    """What a command does, and its examples."""
    return "\n".join([wrapped(about), "", "Examples:", *(f"  {example}" for example in EXAMPLES[name])])
