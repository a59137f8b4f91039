"""Every notebook runs from its first cell to its last, and is kept without outputs."""

import re
import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
from notebook_pages import executed, page_of

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))

SAYS = {
    "certificates": r"right in at least [89]\d\.\d.% of the cases \(from rows that it was not trained on\) \[certified\][\s\S]*consistent: True",
    "images": r"accuracy 9\d\.\d.% on held-out rows[\s\S]*image/png[\s\S]*the true class is in (9[89]|100)\.\d% of the sets",
    "tables": r"left out: patient \(different in most rows[\s\S]*guessing the mean[\s\S]*R² of three folds: \[0\.[2-6]",
}


def test_what_cells_give_fits_the_page_and_has_a_text_alternative() -> None:
    cell = nbformat.v4.new_code_cell("1", metadata={"alt": 'a "figure"'})
    cell.outputs = [
        nbformat.v4.new_output("stream", text="  short\n" + 40 * "long " + "\n"),
        nbformat.v4.new_output("display_data", data={"image/png": "AAAA"}),
    ]
    page = page_of(nbformat.v4.new_notebook(cells=[cell]))
    assert "\n  short\n" in page
    assert max(map(len, page.splitlines())) <= 100
    assert '<img alt="a &quot;figure&quot;"' in page


def test_there_are_notebooks_for_what_is_said_of_them() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(SAYS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_kept(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of the kernel's own machinery
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    page = page_of(executed(path.read_text(), tmp_path))
    assert re.search(SAYS[path.stem], " ".join(page.split())), page  # lines may be broken anywhere
