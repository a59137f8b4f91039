"""Sections about the method."""

from pactrain.report.read import Run
from pactrain.report.sections import configuration


def test_features_are_counted_by_their_sort() -> None:
    encoding = {"numeric": [{}, {}], "categorical": [], "text": [{}], "target": "y", "kind": "classification"}
    table = configuration(Run("r", {"preprocess": encoding}))["main"]["features"]
    assert table == "2 numeric, 1 text"
    graph = encoding | {"numeric": [], "text": [], "node_features": 602}
    assert configuration(Run("r", {"preprocess": graph}))["main"]["features"] == "602 of each node"
