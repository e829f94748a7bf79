"""Numbers that lab 01's text quotes are those recorded."""

import nbformat
import pytest

from kernels.vector_multiply import recordings
from warpcourse.paths import COURSE

LESSON = COURSE / "notebooks" / "01_vector_multiply.ipynb"


def grids():
    """The first grid whose rate the largest one raises by less than a twentieth."""
    value = recordings.recorded("grid_sizes").value
    most = max(row["gbps"] for row in value["rows"])
    blocks = next(row["blocks"] for row in value["rows"] if row["gbps"] > 0.95 * most)
    assert blocks == 8 * value["multiprocessors"]
    return f"the curve flattens at {blocks} blocks, eight for each"


def blocks():
    rows = [row for row in recordings.recorded("block_sizes").value["rows"] if row["kernel"] == "cuda_scalar"]
    rates = [row["gbps"] / 12 / row["block"] for row in rows if row["block"] <= 128]
    assert min(rates) > 0.95 * max(rates)
    return f"some {min(rates):.2f} billion blocks per second in the recording"


@pytest.mark.parametrize(("cell", "quoted"), [("multiply-53", grids), ("multiply-55", blocks)])
def test_the_text_quotes_what_was_recorded(cell, quoted):
    assert quoted() in next(c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == cell)
