"""Three examples of each command, which its help shows."""

EXAMPLES = {
    "train": (
        "pactrain train",
        "pactrain train --data houses.csv --target price",
        "pactrain train --data reviews.csv --target rating --text review --budget 5m --out runs/reviews",
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


def with_examples(name: str, about: str) -> str:
    """What a command does, and its examples."""
    return "\n".join([about, "", "Examples:", *(f"  {example}" for example in EXAMPLES[name])])
