"""Cells on images: their settings and epochs."""

import pytest

from pactrain.experiments.image_scales import Scale
from pactrain.experiments.image_tables import TABLES


def test_cells_put_their_settings_together() -> None:
    table = TABLES["table-bounds"]("paper")
    bbb, authors = (table.cells()["cnn13", column] for column in ("bbb", "layer, authors"))
    assert (bbb.method, bbb.settings["rules"]) == ("pac_bayes", {"bbb_penalty": 0.1})
    assert authors.settings["rules"] == {"lr": 1e-4, "std_lr": 1e-4}
    assert (authors.settings["epochs"], authors.settings["stage2"]) == (500, 200)
    assert authors.settings["network"] == "cnn13"
    group = TABLES["table-predictors"]("cpu").cells()["vgg13:norm=group", "mean"]
    assert group.settings["network"] == "vgg13:width=0.125,norm=group"
    assert len(TABLES["table-cnn"]("paper").cells()["SGD", "vgg13 cifar10"].tried) == 144


@pytest.mark.parametrize(("scale", "epochs"), [("cpu", 100), ("paper", 100), ("cpu", 2)])
def test_other_epochs_keep_the_parts_of_the_stages(scale: Scale, epochs: int) -> None:
    cells = TABLES["table-stages"](scale).changed({"epochs": epochs}).cells()
    found = {row: (c.settings["epochs"], c.settings.get("stage2")) for (row, _), c in cells.items()}
    ten = max(1, epochs // 50)
    second = round(0.4 * epochs)
    assert found == {
        "no stage 1": (round(1.4 * epochs), None),
        "ten epochs of stage 1": (ten, second),
        "no stage 2": (epochs, 0),
        "both stages": (epochs, second),
    }
