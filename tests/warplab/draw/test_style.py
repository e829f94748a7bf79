"""A picture in a notebook."""

from __future__ import annotations

import base64

import nbformat
from nbclient import NotebookClient


def test_a_notebook_shows_each_picture_once(monkeypatch):
    # The kernel must choose the notebook's own backend, as it does for a learner.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    cell = nbformat.v4.new_code_cell("from warplab import draw_grid\ndraw_grid(2, 4, 7)")
    silent = nbformat.v4.new_code_cell("figure = draw_grid(2, 4, 7)")
    notebook = nbformat.v4.new_notebook(cells=[cell, silent])
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    images = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(images) == 1
    assert base64.b64decode(images[0]).startswith(b"\x89PNG")
    assert silent.outputs == []
