"""docs/lessons_weight.md: what labs 00 to 06 ask to read and to do, and that they do not grow."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

COURSE = Path(__file__).parents[1]
ROW = r"^\| (\d\d) ((?:`\S+\.ipynb` )+)\| ([\d,]+) \| ([\d,]+) \| (\d+) \| (\d+) \|$"
PAGE = re.findall(ROW, (COURSE / "docs" / "lessons_weight.md").read_text(encoding="utf-8"), re.MULTILINE)


def weight(lessons: str) -> tuple[int, int]:
    """Words outside code, hints and answers that unfold among them, and tasks ("Your turn"), of a lab's notebooks."""
    names = re.findall("`(.+?)`", lessons)
    cells = [c for name in names for c in nbformat.read(COURSE / "notebooks" / name, as_version=4).cells]
    text = " ".join(cell.source for cell in cells if cell.cell_type == "markdown")
    text = re.sub(r"<[^>]+>", " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL))
    tasks = [tag for cell in cells for tag in cell.metadata.get("tags", [])].count("your-turn")
    return sum(bool(re.search(r"\w", word)) for word in text.split()), tasks


def test_the_page_has_labs_00_to_06():
    assert [number for number, *_ in PAGE] == ["00", "01", "02", "03", "04", "05", "06"]


@pytest.mark.parametrize("row", PAGE, ids=[row[0] for row in PAGE])
def test_a_lesson_has_no_more_words_and_no_fewer_drills_than_the_page_says(row):
    before, now, tasks_before, tasks_now = (int(number.replace(",", "")) for number in row[2:])
    words, tasks = weight(row[1])
    assert words <= now < before, f"{words:,} words: take some out, or argue for more on the page"
    assert tasks >= tasks_now >= tasks_before
