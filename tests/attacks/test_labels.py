"""The table of labels in docs/certificates.md is what the product gives."""

import pytest

from tests.attacks.labels import START, stored, table


@pytest.mark.filterwarnings("ignore")  # of torch-geometric
def test_the_page_shows_the_labels_that_users_see() -> None:
    pytest.importorskip("torch_geometric")
    shown = stored()
    assert shown.count("\n") > 10, f"{START!r} is not on the page"
    assert shown == table(), (
        "docs/certificates.md is out of date: python -m tests.attacks.labels writes its table again"
    )
