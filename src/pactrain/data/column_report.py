"""What became of every column of a table, as plain values and in one line."""

from typing import Any

from pactrain.data.encoder import Encoder

CODES = {
    "ISO8601": "YYYY-MM-DD", "%Y": "YYYY", "%y": "YY", "%m": "MM", "%d": "DD", "%b": "Jan", "%B": "January",
    "%H": "hh", "%M": "mm", "%S": "ss",
}  # fmt: skip
"""How parts of a date are written, for people."""

SHOWN = 6
"""Columns of one sort that are named on the screen."""


def column_records(encoder: Encoder) -> list[dict[str, Any]]:
    """One record per column: its name, what it became, how many features that is."""
    records: dict[str, dict[str, Any]] = {}
    for number in encoder.numeric:
        record = records.setdefault(number.name, {"column": number.name, "became": number.reading.kind, "features": 0})
        record["features"] += 1
        if number.missing:
            record["missing"] = number.missing
            if number.reading.kind == "number":
                record["median"] = number.median
        if number.reading.kind == "date":
            record["written"] = number.reading.form
            record["parts"] = [*record.get("parts", ()), number.part]
    for c in encoder.categorical:
        records[c.name] = {
            "column": c.name, "became": "categories", "features": len(c.categories), "different": c.different,
        }  # fmt: skip
    for text in encoder.text:
        records[text.name] = {"column": text.name, "became": "text", "features": text.width}
    for left in encoder.left_out:
        records[left.name] = {"column": left.name, "became": "left out", "features": 0, "why": left.why}
    return list(records.values())


def columns_in_short(encoder: Encoder) -> str:
    """One line for the screen that counts the columns by what became of them."""
    sorts: dict[str, list[str]] = {}
    for record in column_records(encoder):
        sorts.setdefault(record["became"], []).append(record["column"] + _detail(record))
    return "; ".join(f"{_heading(sort, len(names))}: {_listed(names)}" for sort, names in sorts.items())


def _detail(record: dict[str, Any]) -> str:
    if record["became"] == "left out":
        return f" ({record['why']})"
    if record["became"] in ("number", "duration") and record.get("missing"):
        return f" ({record['missing']:,} missing)"
    if record["became"] == "date":
        return f" ({', '.join(record['parts'])}; written {_as_written(record['written'])})"
    if record["became"] == "categories":
        rare = record["different"] - record["features"]
        return f" ({record['features']}{f', and {rare} rare ones without a feature' if rare else ''})"
    return ""


def _as_written(form: str) -> str:
    """The format of a date as people write it: DD.MM.YYYY."""
    for code, shown in CODES.items():
        form = form.replace(code, shown)
    return form


def _heading(sort: str, count: int) -> str:
    plural = sort if sort in ("left out", "categories", "text") or count == 1 else f"{sort}s"
    return plural if sort == "left out" else f"{count} {plural}" if sort in ("number", "date", "duration") else plural


def _listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
