"""Which sets there are and where they lie."""

import pytest

from pactrain.data import load_images
from pactrain.data.catalogue import ENTRIES, entry_of, fetch, located
from pactrain.data.cifar import read_cifar10
from pactrain.runtime.errors import DataError

pytestmark = pytest.mark.usefixtures("no_data_of_the_machine")


def test_every_named_set_is_in_the_catalogue() -> None:
    from pactrain.data.graphs import GRAPHS, SIZES
    from pactrain.data.named import NAMES

    assert set(ENTRIES) == {*NAMES, *(f"graph:{g}" for g in GRAPHS)}
    for name, (nodes, _, classes) in SIZES.items():
        entry = entry_of(f"graph:{name}")
        assert (entry.examples, entry.classes) == (nodes, classes)
    assert located(entry_of("cifar10")) is None
    with pytest.raises(DataError, match="pactrain data fetch cifar10"):
        read_cifar10()
    with pytest.raises(DataError, match="use one of mnist"):
        load_images("imagenet")
    with pytest.raises(DataError, match="no home"):
        fetch(entry_of("uci:yacht"))
