"""Sliders in JupyterLab, in a real browser: a hand moves one, and the picture above it changes."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.support.chromium import missing
from tests.support.jupyterlab import jupyterlab
from tests.support.waiting import until

COURSE = Path(__file__).parents[3]

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(missing() != "", reason=missing())]

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
CODE = """\
from warplab import draw_grid, sliders
sliders(lambda blocks: draw_grid(blocks, 8, 29), blocks=range(1, 5))"""
ARROW_RIGHT = "\ue014"


def test_a_slider_changes_the_picture_above_it(tmp_path):
    cells = [nbformat.v4.new_code_cell(CODE)]
    nbformat.write(nbformat.v4.new_notebook(metadata=KERNEL, cells=cells), tmp_path / "slider.ipynb")
    with jupyterlab(tmp_path, PYTHONPATH=str(COURSE), WARPLAB_BACKEND="simulator") as lab:
        lab.browser.size(1300, 1000)
        lab.open_notebook("slider.ipynb")
        lab.run_cell(0)
        until(lambda: lab.element(0, "img.widget-image"), "the picture")

        def picture(what: str):
            return lab.browser.run(f"return arguments[0].{what}", lab.element(0, "img.widget-image"))

        until(lambda: picture("complete && arguments[0].naturalWidth > 0"), "the picture's data")
        first = picture("src")
        assert picture("clientWidth") <= picture("naturalWidth")  # a stretched picture is blurred
        assert len(lab.browser.run("return document.querySelectorAll('.jp-OutputArea-output img')")) == 1
        lab.browser.type(lab.element(0, ".noUi-handle"), ARROW_RIGHT)
        until(lambda: picture("src") != first, "another picture")
        assert "2" in lab.output(0).splitlines()
