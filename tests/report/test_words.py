"""Sentences of the report."""

from dataclasses import replace

from pactrain.certification.statement import FORMULAS
from pactrain.report.words import HOW, finding
from tests.certification.test_certificate_record import ERROR


def test_every_formula_says_where_its_number_comes_from() -> None:
    assert HOW.keys() == FORMULAS.keys()


def test_a_label_that_is_not_certified_is_explained_beside_its_statement() -> None:
    assert "would be certified" not in finding(ERROR).how
    assert "Would be certified if" in finding(replace(ERROR, label="estimated")).how
