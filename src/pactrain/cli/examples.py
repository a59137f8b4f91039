"""Three examples of each command, which its help shows."""

from shutil import get_terminal_size
from textwrap import fill

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
        "pactrain certify runs/houses",
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
        "pactrain reproduce --help",
        "pactrain reproduce table-gnn",
        "pactrain reproduce table-cnn --scale cpu --workers 2",
    ),
}


def wrapped(text: str) -> str:
    """A text in lines as wide as the terminal, broken between words; tyro keeps lines that begin with a space."""
    return fill(" ".join(text.split()), get_terminal_size().columns, subsequent_indent="  ", break_on_hyphens=False)


def with_examples(name: str, about: str) -> str:
    """What a command does, and its examples."""
    return "\n".join([wrapped(about), "", "Examples:", *(f"  {example}" for example in EXAMPLES[name])])
