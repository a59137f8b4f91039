"""Records that are not certificates are refused before anything is computed from them."""

import copy
import math
import random
from typing import Any

import pytest

from pactrain import PactrainError
from pactrain.certification.record import check_record
from tests.tools.records import random_record


def test_consistent_records_pass() -> None:
    rng = random.Random(0)
    for _ in range(200):
        check_record(random_record(rng))


def record_with_statement(bound: str) -> dict[str, Any]:
    """A consistent record whose first statement has this bound."""
    rng = random.Random(1)
    while True:
        record = random_record(rng)
        if record["statements"] and record["statements"][0]["bound"] == bound:
            return record


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("n",), "60"), (("n",), True), (("delta",), math.inf), (("delta",), None), (("seed",), 0.5), (("remark",), ""),
        (("statements",), {}), (("statements",), [7]), (("caveats",), [{}]), (("caveats",), [{"reason": "", "label": "proved"}]),
        (("statements", 0, "label"), "proved"), (("statements", 0, "label"), []), (("statements", 0, "value"), math.nan),
        (("statements", 0, "constant_answer"), "low"), (("statements", 0, "inputs"), None),
        (("statements", 0, "inputs", "kl"), -1.0), (("statements", 0, "inputs", "n"), 0.5),
        (("statements", 0, "inputs", "n"), 0), (("statements", 0, "inputs", "scale"), 0.0),
        (("statements", 0, "inputs", "bins"), 0), (("statements", 0, "inputs", "choices"), 1.5),
        *((("statements", 0, "inputs", "counts"), text) for text in
          (5, "", "0:0", "1:5 0:5", "0:5 0:5", "0:5  1:5", "0:-5", "00:5", "0:05", "0:5 ", "0:5\n", "٣:5", "0:1e3")),
        (("statements", 0, "inputs", "prior_nats"), 1e300), (("statements", 0, "inputs", "kl"), "1"),
    ],
)  # fmt: skip
def test_malformed_records_are_refused(path: tuple[Any, ...], value: Any) -> None:
    record = record_with_statement("kl")
    check_record(record)
    holder: Any = record
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    with pytest.raises(PactrainError, match="not a certificate"):
        check_record(record)


@pytest.mark.parametrize("record", [None, [], "text", {}, {"format": 4}])
def test_other_json_is_refused(record: Any) -> None:
    with pytest.raises(PactrainError, match="not a certificate"):
        check_record(record)


def test_every_field_is_needed() -> None:
    record = record_with_statement("kl")
    for name in record:
        less = copy.deepcopy(record)
        del less[name]
        with pytest.raises(PactrainError, match=name):
            check_record(less)
