"""The record of a certificate: what is inconsistent in it, what it spends, how two of them differ, what it tells first."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pactrain import Certificate, PactrainError
from pactrain.certification.certificate import FORMAT
from pactrain.certification.statement import (
    DRAWN,
    MEAN,
    PRIOR,
    RANDOMISED,
    Caveat,
    Statement,
    at_least,
    spent_delta,
    statement,
)
from tests.certification.inputs import ETA, KL, MEASURED, UNBOUNDED

SMOOTHED = MEASURED | {"limit": 5.0, "u": 0.5}
ERROR = statement("0-1 error", RANDOMISED, "certified", "kl", KL, prior="grid")
CLIPPED = statement("clipped loss", RANDOMISED, "certified", "kl", KL | {"scale": 9.2}, prior="grid")
LOSS = statement("loss", RANDOMISED, "estimated", "unbounded (cgf)", UNBOUNDED, prior="grid")
ONE = statement(
    "0-1 error", DRAWN, "certified", "disintegrated",
    {"risk": 0.1, "log_ratio": 12.0, "prior_nats": 7.0, "n": 900, "delta_bound": 0.003},
)  # fmt: skip
ENTROPY = statement("cross-entropy smoothed by 0.05", RANDOMISED, "certified", "bernstein", SMOOTHED, prior="grid")
BEFORE = statement("0-1 error", PRIOR, "certified", "counted rows", {"errors": 3, "n": 900, "delta_bound": 0.002})
HELD_OUT = statement("0-1 error", MEAN, "certified", "test set", {"errors": 3, "n": 50, "delta_bound": 0.002})
TRAINED = statement("training loss", RANDOMISED, "heuristic", "training objective + η", ETA, when="end of stage 1")


def certificate(*statements: Statement, **more: Any) -> Certificate:
    fields: dict[str, Any] = {"delta": 0.05, "n": 900, "loss": "cross_entropy", "seed": 0} | more
    return Certificate(statements=statements, **fields)


# -- consistency -------------------------------------------------------------------------------------------------------


def test_a_consistent_record() -> None:
    whole = certificate(ERROR, CLIPPED, ENTROPY, LOSS, ONE, BEFORE, HELD_OUT, TRAINED)
    assert whole.problems() == []
    assert whole.recheck()
    assert whole.format == FORMAT == 4
    assert Certificate.from_dict(whole.to_dict()) == whole


def test_a_changed_record() -> None:
    changed = replace(certificate(ERROR), digest="0" * 32)
    assert [p.rpartition(":")[2] for p in changed.problems()] == [" its digest does not fit"]
    assert not changed.recheck()
    with pytest.raises(ValueError, match="JSON"):
        certificate(delta=math.nan)
    with pytest.raises(ValueError, match="JSON"):
        certificate(delta=math.nan, digest="x").to_dict()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (replace(ERROR, value=ERROR.value * (1 - 1e-15)), "computed again it is "),
        (replace(ERROR, label="proved"), "'proved' is no label"),  # type: ignore[arg-type]
        (replace(LOSS, label="certified"), "it cannot be certified"),
        (replace(ERROR, constant_answer=ERROR.value), "it cannot be certified: it is vacuous"),
        (statement("x", MEAN, "certified", "kl", KL | {"n": 901}), "it counts 901 examples, the certificate 900"),
        (statement("x", MEAN, "heuristic", "training objective + η", ETA | {"delta": 1}), "delta = 1 is no probability"),
        (statement("x", MEAN, "heuristic", "training objective + η", ETA | {"delta": 1.5}), "delta = 1.5 is no probability"),
    ],
)  # fmt: skip
def test_a_changed_statement(changed: Statement, problem: str) -> None:
    (found,) = certificate(HELD_OUT, changed).problems()
    start = f"{changed.quantity}, {changed.bound}, {changed.when}: "
    assert found.startswith(start + problem)
    assert "vacuous" not in found or problem.endswith("vacuous")


def test_two_problems_of_a_statement_are_both_found() -> None:
    changed = replace(statement("x", MEAN, "heuristic", "training objective + η", ETA | {"delta": 1}), value=0.5)
    assert ["no probability" in p for p in certificate(changed).problems()] == [False, True]


def test_vacuous_statements_may_have_lower_labels() -> None:
    assert certificate(replace(ERROR, label="estimated", constant_answer=0.0)).problems() == []
    assert certificate(replace(ERROR, label="heuristic")).problems() == []


@pytest.mark.parametrize(
    ("labels", "s", "fits"),
    [
        (["estimated"], ERROR, False), (["estimated"], LOSS, True), (["certified"], ERROR, True), (["heuristic"], LOSS, False),
        (["heuristic", "certified"], LOSS, False), (["certified", "estimated"], LOSS, True), (["heuristic"], HELD_OUT, True),
        (["heuristic"], TRAINED, True),
    ],
)  # fmt: skip
def test_caveats_take_labels_away(labels: list[Any], s: Statement, fits: bool) -> None:
    found = certificate(s, caveats=tuple(Caveat("why", label) for label in labels)).problems()
    wanted = f"{s.quantity}, {s.bound}, {s.when}: a caveat does not leave it the label {s.label}"
    assert found == ([] if fits else [wanted])


@pytest.mark.parametrize("delta", [-0.5, 0.0, 1.0, 1.5])
def test_delta_is_a_probability(delta: float) -> None:
    assert f"delta = {delta} is no probability" in certificate(delta=delta).problems()


# -- δ -----------------------------------------------------------------------------------------------------------------


def test_what_is_spent() -> None:
    earlier = statement(
        "0-1 error", RANDOMISED, "certified", "kl", KL | {"delta_bound": 0.01}, prior="grid", when="once"
    )
    paper = statement("loss", RANDOMISED, "estimated", "unbounded (paper)", UNBOUNDED | {"confidence_nats": 6.0})
    assert spent_delta([]) == 0
    assert spent_delta([ERROR]) == pytest.approx(0.005)
    for both in ([ERROR, earlier], [earlier, ERROR]):  # one event, measured twice
        assert spent_delta(both) == pytest.approx(0.01 + 2 * 0.001)
    assert spent_delta([ERROR, replace(ERROR, prior="scale"), CLIPPED]) == pytest.approx(3 * 0.005)
    assert spent_delta([ERROR, replace(ERROR, predictor=DRAWN)]) == pytest.approx(2 * 0.005)
    other = replace(ENTROPY, quantity="cross-entropy smoothed by 1e-05", when="once")
    assert spent_delta([ENTROPY, other]) == pytest.approx(
        0.004 + 2 * 0.001
    )  # the choice of the smoothing is paid for by both
    assert spent_delta([ENTROPY, replace(ENTROPY, quantity="cross-entropy smoothed by half")]) == pytest.approx(
        2 * 0.005
    )
    assert spent_delta([ENTROPY, replace(ERROR, quantity=ENTROPY.quantity)]) == pytest.approx(2 * 0.005)
    assert spent_delta([LOSS, paper]) == 0  # nothing is proved by them
    assert spent_delta([ONE, replace(ONE, when="once"), HELD_OUT, BEFORE]) == pytest.approx(2 * 0.003 + 2 * 0.002)
    assert spent_delta([TRAINED]) == 0
    every = [ERROR, earlier, CLIPPED, LOSS, paper, ONE, HELD_OUT, TRAINED]
    assert spent_delta(every) == pytest.approx(0.01 + 0.004 + 3 * 0.001 + 0.003 + 0.002)


def test_no_more_than_delta_is_spent() -> None:
    limit = 0.05 * (1 + 1e-9)
    for spent, fits in ((limit, True), (math.nextafter(limit, 1), False), (0.2, False)):
        one = statement("x", MEAN, "certified", "test set", HELD_OUT.inputs | {"delta_bound": spent})
        found = certificate(one).problems()
        assert [p.startswith("its statements spend") for p in found] == [True] * (not fits)


# -- differences -------------------------------------------------------------------------------------------------------


def test_differences() -> None:
    first = certificate(ERROR, LOSS, measured={"a": [1.0, 2.0], "b": True, "c": {"d": None}}, notes=("x",))
    assert first.differences(first) == []
    assert first.differences(replace(first, digest="other")) == []

    def compared(tolerance: float = 0.0, **changes: Any) -> list[str]:
        return first.differences(replace(first, digest="", **changes), tolerance=tolerance)

    assert compared(delta=0.06) == ["delta: stored 0.05, made again 0.06"]
    assert first.differences(replace(first, delta=0.05 + 1e-12)) != []
    assert compared(0.5, delta=0.06) == ["delta: stored 0.05, made again 0.06"]  # δ follows from the settings alone
    assert compared(0.5, n=901) == ["n: stored 900, made again 901"]  # and so do whole numbers
    assert compared(0.5, budget={"a": 0.01}) == ["budget.a: stored None, made again 0.01"]
    larger = first.measured | {"a": [1.0, 2.5]}
    assert compared(0.25, measured=larger) == []  # relative above 1
    assert compared(0.24, measured=larger) == ["measured.a[1]: stored 2.0, made again 2.5"]
    small = certificate(measured={"a": 0.5})
    assert small.differences(certificate(measured={"a": 0.7}), tolerance=0.21) == []  # absolute below 1
    assert small.differences(certificate(measured={"a": 0.7}), tolerance=0.19) != []
    shared = certificate(budget={"a": 0.01})
    assert shared.differences(certificate(budget={"a": 0.02}), tolerance=0.5) == [
        "budget.a: stored 0.01, made again 0.02"
    ]
    assert compared(notes=()) == ["notes: stored ['x'], made again []"]
    assert compared(notes=("y",)) == ["notes[0]: stored 'x', made again 'y'"]
    other = {"a": [1.0, 3.0], "b": 1, "c": {}, "e": 5}
    assert compared(measured=other) == [
        "measured.a[1]: stored 2.0, made again 3.0",
        "measured.b: stored True, made again 1",
        "measured.e: stored None, made again 5",
    ]
    assert compared(5.0, measured=first.measured | {"b": 1}) == ["measured.b: stored True, made again 1"]
    assert compared(measured=first.measured | {"c": []}) == ["measured.c: stored {'d': None}, made again []"]
    assert compared(measured=first.measured | {"a": {}}) == ["measured.a: stored [1.0, 2.0], made again {}"]
    assert compared(5.0, measured=first.measured | {"a": [1.0, "2"]}) == ["measured.a[1]: stored 2.0, made again '2'"]
    assert compared(measured=first.measured | {"a": [1, 2.0]}) == ["measured.a[0]: stored 1.0, made again 1"]
    text = first.measured | {"a": "12"}
    assert compared(measured=text) == ["measured.a: stored [1.0, 2.0], made again '12'"]
    back = certificate(measured=text).differences(certificate(measured=first.measured))
    assert back == ["measured.a: stored '12', made again [1.0, 2.0]"]
    inputs = KL | {"kl": 20.5}
    assert compared(statements=(replace(ERROR, inputs=inputs), LOSS)) == [
        "statements[0].inputs.kl: stored 20.0, made again 20.5"
    ]


# -- what is told ------------------------------------------------------------------------------------------------------


def test_the_best_statement() -> None:
    worse = statement("0-1 error", RANDOMISED, "certified", "kl", KL | {"kl": 90.0}, prior="scale")
    early = statement("0-1 error", RANDOMISED, "certified", "kl", KL | {"kl": 1.0}, when="end of stage 1")
    lower = replace(statement("0-1 error", RANDOMISED, "certified", "kl", KL | {"kl": 2.0}), label="estimated")
    made = certificate(worse, early, ERROR, ONE, CLIPPED, lower)
    assert made.best("0-1 error") == lower
    assert made.best("0-1 error", label="certified") == ERROR
    assert made.best("0-1 error", DRAWN) == ONE
    assert made.best("0-1 error", MEAN) is None
    assert made.best("0-1 error", label="heuristic") is None
    assert made.best("clipped loss") == CLIPPED


def test_the_prior_is_preferred_where_its_network_has_the_smallest_error() -> None:
    assert BEFORE.value < ONE.value < ERROR.value
    assert certificate(ERROR, ONE, BEFORE).prefers_prior()
    assert certificate(BEFORE).prefers_prior()
    better = replace(ERROR, value=0.001)
    for others in (
        (better, BEFORE),
        (ERROR, replace(BEFORE, label="heuristic")),
        (replace(BEFORE, predictor=MEAN),),
        (),
    ):
        assert not certificate(*others).prefers_prior()
    for aside in (replace(better, label="heuristic"), replace(better, quantity="loss"), replace(HELD_OUT, value=0.001)):
        assert certificate(ERROR, BEFORE, aside).prefers_prior()


def test_the_strongest_is_told_first() -> None:
    estimated = replace(ERROR, label="estimated", value=0.01)
    made = certificate(TRAINED, LOSS, CLIPPED, ONE, estimated, ERROR, HELD_OUT)
    assert made.findings() == [HELD_OUT, ERROR, ONE, CLIPPED, LOSS]  # where one is certified, nothing is estimated
    lines = str(made).splitlines()
    assert lines[0] == "On new data, with 95 % confidence:"
    assert [line.rpartition(" ")[2] for line in lines[1:]] == ["[certified]"] * 4 + ["[estimated]"]
    assert str(certificate(TRAINED)) == "Nothing is claimed about this network on new data."


def vacuous(s: Statement, constant: float = 0.05) -> Statement:
    return replace(s, label="heuristic", constant_answer=constant)


def test_what_the_training_examples_do_not_tell() -> None:
    worse = statement("0-1 error", RANDOMISED, "heuristic", "kl", KL | {"kl": 90.0}, constant_answer=0.05)
    silent = f"0-1 error (bound {ERROR.value:.3g}; a constant answer has 0.05)"
    line = f"From the 900 training rows alone nothing useful can be proved about the {silent}"
    shown = [vacuous(ERROR), worse]
    nothing = "From the 900 training rows alone nothing useful can be proved."
    assert str(certificate(*shown, HELD_OUT)).splitlines()[2:] == [nothing]  # the test set proves something else
    assert str(certificate(*shown, LOSS)).splitlines()[2:] == [line + "."]
    clipped = f"clipped loss (bound {CLIPPED.value:.3g}; a constant answer has 0.05)"
    assert str(certificate(*shown, vacuous(CLIPPED), LOSS)).splitlines()[2:] == [f"{line} or the {clipped}."]
    assert str(certificate(*shown, vacuous(CLIPPED))).splitlines()[1:] == [nothing]
    assert str(certificate(ERROR, worse)).splitlines()[2:] == []  # one of them is proved
    assert str(certificate(vacuous(ERROR, 0.9))).splitlines()[1:] == []  # it is not vacuous
    assert str(certificate(vacuous(LOSS))).splitlines()[1:] == []  # this is no such proof


def test_held_out_rows_that_prove_too_little_say_how_little() -> None:
    (line,) = str(certificate(vacuous(ERROR), vacuous(HELD_OUT))).splitlines()[1:]
    assert line.replace("\N{NO-BREAK SPACE}", " ") == (
        f"Held-out rows prove that it is right in at least {at_least(1 - HELD_OUT.value)} of the cases, which is too little to be of "
        "use: always naming the largest class is right in 95.0 %."
    ).replace("\N{NO-BREAK SPACE}", " ")
    assert "Held-out" not in str(certificate(ERROR, vacuous(HELD_OUT)))


def test_caveats_about_what_is_not_said_are_left_out_in_brief() -> None:
    caveats = (
        Caveat("a weak reason", "estimated"),
        Caveat("a remark", "certified"),
        Caveat("a strong one", "heuristic"),
    )
    silent, spoken = (certificate(s, caveats=caveats) for s in (vacuous(ERROR), HELD_OUT))
    assert silent.remarks(brief=True) == ["Not certified: a strong one."]
    assert spoken.remarks(brief=True) == ["Note: a remark.", "Not certified: a strong one."]
    assert len(silent.remarks()) == 3


def test_caveats_and_notes() -> None:
    doubted = certificate(vacuous(ERROR), caveats=(Caveat("why"),), notes=("a", "b"))
    nothing = "Nothing is claimed about this network on new data."
    assert str(doubted).splitlines() == [nothing, "Not certified: why.", "Note: a.", "Note: b."]
    held_out = str(certificate(vacuous(ERROR), HELD_OUT, caveats=(Caveat("why"),))).splitlines()
    assert [line.partition(" ")[0] for line in held_out[2:]] == ["From", "Not"]


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, "no statements"), ([], "no statements"), ({"format": 3}, "format 3 is not known"), ({"digest": ""}, "no digest"),
        ({"format": None}, "format None is not known"), ({"n": "900"}, "n of the certificate cannot be '900'"),
    ],
)  # fmt: skip
def test_other_records_are_refused(change: Any, reason: str) -> None:
    values = certificate(ERROR).to_dict() | change if isinstance(change, dict) else change
    with pytest.raises(PactrainError, match=reason):
        Certificate.from_dict(values)
    with pytest.raises(PactrainError, match="no statements"):
        Certificate.from_dict({k: v for k, v in certificate(ERROR).to_dict().items() if k != "statements"})


def test_fields_of_a_record_that_was_read(tmp_path: Path) -> None:
    whole = certificate(ERROR, caveats=(Caveat("why", "certified"),), notes=("a",))
    again = Certificate.from_dict(whole.to_dict())
    assert (again.statements, again.caveats, again.notes) == (whole.statements, whole.caveats, whole.notes)
    with pytest.raises(PactrainError, match="there is no file"):
        Certificate.read(tmp_path / "nothing.json")
    (tmp_path / "some.json").write_text("[")
    with pytest.raises(PactrainError, match=r"some\.json"):
        Certificate.read(tmp_path / "some.json")
