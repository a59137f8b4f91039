"""SST-2 and QNLI: the TSV files that GLUE ships, or both in one compressed JSON file."""

import csv
import lzma
from pathlib import Path
from typing import Literal

from pactrain.data.places import data_file
from pactrain.data.text import Text
from pactrain.runtime.errors import DataError
from pactrain.runtime.untrusted import expanded_limit, parse_json, regular

TOGETHER = "glue_sst2_qnli.json.xz"
FOLDERS = {"sst2": "SST-2", "qnli": "QNLI"}
COLUMNS = {"sst2": ("sentence",), "qnli": ("question", "sentence")}
CLASSES = {"0": 0, "1": 1, "not_entailment": 0, "entailment": 1}

Part = Literal["train", "dev"]


def read_glue(name: str, part: Part, root: str | Path | None = None) -> tuple[list[Text], list[int]]:
    """Texts (SST-2) or pairs of texts (QNLI), and their classes: 1 is positive, or the sentence answers the question."""
    if name not in FOLDERS:
        raise DataError(f"there is no GLUE set {name!r} here; use one of {', '.join(FOLDERS)}")
    try:
        path = data_file(f"{FOLDERS[name]}/{part}.tsv", root)
    except DataError as missing:
        try:
            return _together(data_file(TOGETHER, root), name, part)
        except DataError as error:
            raise DataError(f"{missing} ({TOGETHER}, which holds both sets, is not there either)") from error
    return _tsv(path, name)


def _tsv(path: Path, name: str) -> tuple[list[Text], list[int]]:
    try:
        with regular(path).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a table of texts: {error}") from error
    if not rows:
        raise DataError(f"{path} has no rows")
    texts: list[Text] = []
    labels = []
    for number, row in enumerate(rows, start=1):
        words = [row.get(column) for column in COLUMNS[name]]
        if None in words or row.get("label") not in CLASSES:
            raise DataError(f"{path}: row {number} lacks one of {', '.join(COLUMNS[name])} or a known label")
        texts.append(_text([str(w).strip() for w in words]))
        labels.append(CLASSES[str(row["label"])])
    return texts, labels


def _together(path: Path, name: str, part: Part) -> tuple[list[Text], list[int]]:
    limit = expanded_limit(regular(path))
    try:
        with lzma.open(path) as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise ValueError(f"it expands to more than {limit:,} bytes")
        parts = parse_json(content)[name]
        rows = parts[part] if part in parts else parts[f"{part}_part"]
        return [_text([str(word) for word in row[:-1]]) for row in rows], [CLASSES[str(row[-1])] for row in rows]
    except (OSError, EOFError, ValueError, RecursionError, lzma.LZMAError, LookupError, TypeError) as error:
        raise DataError(f"{path} does not hold the {part} part of {name}: {error!r:.200}") from error


def _text(words: list[str]) -> Text:
    return words[0] if len(words) == 1 else (words[0], words[1])
