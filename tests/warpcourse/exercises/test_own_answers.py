"""Every exercise asks for the learner's own work: `checks.own_work` ends its setup."""

from __future__ import annotations

import nbformat
import pytest

from warpcourse.exercises import release
from warpcourse.paths import COURSE


@pytest.mark.parametrize("topic", release.topics(COURSE))
def test_own_work_is_called_before_the_first_answer(topic):
    notebook = nbformat.read(COURSE / "solutions" / topic / f"{topic}.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    called = [number for number, source in enumerate(cells) if "checks.own_work(" in source]
    first_answer = next(number for number, source in enumerate(cells) if "BEGIN SOLUTION" in source)
    assert len(called) == 1
    assert called[0] < first_answer
