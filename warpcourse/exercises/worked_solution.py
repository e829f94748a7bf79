"""The worked solution of an exercise, for a learner who has full marks: text and answers, without the tests."""

import re
from pathlib import Path

import nbformat
from nbgrader.utils import is_grade, is_locked, is_solution

from warpcourse.paths import COURSE, own_folder

FOLDER = "solutions"
_MARKS = re.compile(r"\s*(###|///?) (BEGIN|END) SOLUTION\s*")


def write(topic: str, course: Path = COURSE, own: Path | None = None) -> Path | None:
    """Write the worked solution of exercise `topic` into the learner's folder and return where it is.

    None if the course came without solutions, as an instructor may hand it out, or if the folder cannot be written.
    """
    source = course / "solutions" / topic / f"{topic}.ipynb"
    if not source.is_file():
        return None
    notebook = nbformat.read(source, as_version=4)
    kept = []
    for cell in notebook.cells:
        if is_grade(cell) and not is_solution(cell):
            continue
        if is_solution(cell) or is_locked(cell):
            cell.metadata.pop("nbgrader", None)
        if cell.cell_type == "code":
            cell.source = "\n".join(line for line in cell.source.splitlines() if not _MARKS.fullmatch(line))
            cell.outputs, cell.execution_count = [], None
        kept.append(cell)
    note = f"The worked solution of [the exercise](../exercises/{topic}/exercise_{topic}.ipynb), without its tests."
    notebook.cells = [nbformat.v4.new_markdown_cell(note, id="solution-note"), *kept]
    target = (own or own_folder()) / FOLDER / f"solution_{topic}.ipynb"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)
    except OSError:
        return None
    return target
