"""Sentences of the report."""

from pactrain.certification.statement import FORMULAS
from pactrain.report.words import HOW


def test_every_formula_says_where_its_number_comes_from() -> None:
    assert HOW.keys() == FORMULAS.keys()
