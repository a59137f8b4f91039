"""The arguments of `fit` as one record."""

from dataclasses import MISSING, fields

from pactrain import fit
from pactrain.training.options import Options


def test_what_is_left_out_is_what_fit_leaves_out() -> None:
    own = {f.name: f.default for f in fields(Options) if f.default is not MISSING}
    defaults = fit.__kwdefaults__ or {}
    shared = set(own) & set(defaults) - {"metrics"}
    assert len(shared) >= 14
    assert {name: own[name] for name in shared} == {name: defaults[name] for name in shared}
