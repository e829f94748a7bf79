"""The same page as a cell of a notebook in JupyterLab, in both of its themes."""

from __future__ import annotations

import importlib

import nbformat
import pytest

from digits.workspace import Workspace
from tests.support.chromium import missing
from tests.support.jupyterlab import jupyterlab
from tests.support.waiting import until
from warpcourse.paths import COURSE

stub = importlib.import_module("tests.labs.12_digits.run_stub")
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]

CELL = "from digits.page.page import Page\nPage(open_at='Train')"


def test_a_cell_shows_the_page(tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    stub.dataset(workspace)
    stub.written(workspace, "mine", "paused", epochs=10, reached=4)
    cells, kernel = [nbformat.v4.new_code_cell(CELL)], {"name": "python3", "display_name": "Python 3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "page.ipynb")
    with jupyterlab(tmp_path, PYTHONPATH=str(COURSE), WARPLAB_DIGITS=str(workspace.root)) as lab:
        lab.browser.size(1300, 1000)
        lab.open_notebook("page.ipynb")
        lab.run_cell(0)
        until(lambda: "Paused: mine" in lab.output(0), "the page in the cell's output")
        until(lambda: lab.element(0, ".digits-chart svg[role=img]"), "its curves")
        lab.browser.click(lab.element(0, ".digits-steps button:nth-child(3)"))
        until(lambda: "Base learning rate" in lab.output(0), "another panel")
        ink = "return getComputedStyle(document.querySelector('.digits-page h3')).color"
        light = lab.browser.run(ink)
        lab.theme("JupyterLab Dark")
        until(lambda: lab.browser.run(ink) != light, "the colours of the dark theme")
        (tmp_path / "lab.png").write_bytes(lab.browser.picture())
    log = workspace.root / "page.log"
    assert not log.exists(), log.read_text()
