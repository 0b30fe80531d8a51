"""The notebooks run, and are stored without output."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted(Path("notebooks").glob("*.ipynb"))
FAST = "01_first_game"
# The Jupyter stack's own debts.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=str)
def test_stored_without_output(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path), marks=[] if path.stem == FAST else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
)
def test_runs(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
