"""Box plots."""

from pathlib import Path

import pytest

from pactrain.experiments.box_plots import draw_boxes
from pactrain.experiments.table_cells import compare
from pactrain.runtime.errors import PactrainError
from tests.experiments.small_cells import carry_out, cell


def test_boxes_are_drawn(tmp_path: Path) -> None:
    cells = compare([cell(True)], carry_out, every=True)
    for name in ("boxes.svg", "boxes.png"):
        draw_boxes(cells, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 2000
    with pytest.raises(PactrainError, match=r"\.svg, \.png or \.pdf"):
        draw_boxes(cells, tmp_path / "boxes.gif")
