"""Lesson 00 lets the learner write before he has read much."""

from __future__ import annotations

import re

import nbformat

from warpcourse.paths import COURSE


def test_each_kernel_of_lab_00_comes_after_at_most_sixty_words():
    """From the heading of its section, or the last cell that is run, to the cell where the learner writes."""
    words, each = 0, []
    for cell in nbformat.read(COURSE / "notebooks" / "00_start_here.ipynb", as_version=4).cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL)
            *before, text = re.split(r"^## .*$", text, flags=re.MULTILINE)
            written = re.sub(r"^#.*$", "", text, flags=re.MULTILINE).split()
            words = words * (not before) + sum(bool(re.search(r"\w", word)) for word in written)
        else:
            each += [words] * ("your-turn" in cell.metadata.get("tags", []))
            words = 0
    assert len(each) == 8
    assert max(each) <= 60, each
