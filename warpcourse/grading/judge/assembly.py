"""A submission's notebook put together with the instructor's, so that only answers come from the student.

Nothing in a submission is trusted: of its notebook only the text of cells is used, and of that only what the student
may write.
"""

import contextlib
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from warpcourse.exercises import score
from warpcourse.exercises.recognise import restore
from warpcourse.exercises.score import cell_id
from warpcourse.grading.judge.hidden_tests import without_hidden_tests
from warpcourse.grading.judge.untrusted import Reading, Unusable


@dataclass
class Assembled:
    """A notebook ready to be graded. `notes`: changes to the student's cells, for student and instructor."""

    notebook: NotebookNode
    notes: list[str] = field(default_factory=list)


def assemble(name: str, master: NotebookNode, files: Mapping[str, bytes], reading: Reading | None = None) -> Assembled:
    """Return the student's notebook of assignment `name` with the instructor's tests in it. Raises `Unusable`.

    `master`: the instructor's notebook with hidden tests. `exercises.score.assemble` tells what comes from whom.
    `reading`: of this submission.
    """
    submitted, notes = _notebook(name, master, files, reading or Reading())
    notebook = score.assemble(submitted, master)
    for index, cell in enumerate(notebook.cells):
        if cell_id(cell) is None:
            cell.id = f"own-{index}"  # ids must differ, and a student's may not
    return Assembled(notebook, notes + _changes(submitted, master))


def refused(master: NotebookNode, reason: str) -> NotebookNode:
    """Return the notebook of a submission that could not be graded: no answers, and every test fails with `reason`."""
    notebook = copy.deepcopy(master)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
            if is_grade(cell):
                cell.outputs = [nbformat.v4.new_output("error", ename="NotGraded", evalue=reason, traceback=[reason])]
    return notebook


def _notebook(
    name: str, master: NotebookNode, files: Mapping[str, bytes], reading: Reading
) -> tuple[NotebookNode, list[str]]:
    """Find the assignment's notebook among the files: by its name, else the only one that has its cells."""
    wanted = f"{name}.ipynb"
    if wanted in files:
        found = _of_this_assignment(files[wanted], master, reading)
        if found is None:
            raise Unusable(
                f"{wanted} has no cell of this assignment: is it the notebook of another one? If not, the program that "
                "saved it dropped nbgrader's metadata; copy the answers into a fresh copy of the exercise."
            )
        return found
    others = {}
    for path, content in files.items():
        if path.endswith(".ipynb"):
            with contextlib.suppress(Unusable):
                found = _of_this_assignment(content, master, reading)
                if found is not None:
                    others[path] = found
    if len(others) == 1:
        ((path, (submitted, notes)),) = others.items()
        return submitted, [f"{wanted} is missing; {path} has its cells and was graded.", *notes]
    if others:
        raise Unusable(f"{wanted} is missing, and several notebooks have its cells: {', '.join(sorted(others))}.")
    raise Unusable(f"{wanted} is missing from the submission.")


def _of_this_assignment(
    content: bytes, master: NotebookNode, reading: Reading
) -> tuple[NotebookNode, list[str]] | None:
    """Return a notebook and notes on cells that lost their names, which it has again; None if it is of another one."""
    submitted = parse(content, reading)
    guessed = ["The notebook is not UTF-8 and was read as Latin-1: check its accents."] * reading.not_utf8
    found = reading.names(submitted, master)
    if found.nameless and not found.places:
        return None
    restore(submitted, master, found)
    return submitted, guessed + found.notes()


def parse(content: bytes, reading: Reading) -> NotebookNode:
    """Rebuild a notebook from its bytes, keeping only the text of its cells, their ids, and those that nbgrader gave.

    Outputs, kernel and all other metadata are dropped. Raises `Unusable`.
    """
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }
    cells = []
    for found in reading.notebook(content):
        cell = make[found["cell_type"]](source=found["source"])
        if "id" in found:
            cell.id = found["id"]
        if "grade_id" in found:
            cell.metadata["nbgrader"] = {"grade_id": found["grade_id"], "solution": found["solution"]}
        if "attachments" in found:
            cell["attachments"] = found["attachments"]
        cells.append(cell)
    return nbformat.v4.new_notebook(cells=cells)


def _changes(submitted: NotebookNode, master: NotebookNode) -> list[str]:
    """Return what the student did to the instructor's cells."""
    notes = []
    found: dict[str, list[NotebookNode]] = {}
    for cell in submitted.cells:
        if name := cell_id(cell):
            found.setdefault(name, []).append(cell)
    for given in master.cells:
        name = cell_id(given)
        if name is None:
            continue
        copies = found.get(name, [])
        if len(copies) > 1:
            notes.append(f"Cell {name!r} was there {len(copies)} times; the last one counted.")
        if is_locked(given):
            if not copies:
                notes.append(f"Cell {name!r} was deleted and has been put back.")
            elif copies[-1].source.rstrip() not in (without_hidden_tests(given.source).rstrip(), given.source.rstrip()):
                notes.append(f"Cell {name!r} was edited; the instructor's was used.")
        elif not copies and (is_solution(given) or is_task(given)):
            notes.append(f"The answer cell {name!r} is missing.")
    order = [cell_id(cell) for cell in submitted.cells if cell_id(cell)]
    order = [name for index, name in enumerate(order) if name not in order[index + 1 :]]
    given_order = [cell_id(cell) for cell in master.cells if cell_id(cell) in found]
    if [name for name in order if name in given_order] != given_order:
        notes.append("Cells of the exercise were moved; they were graded in their original order.")
    return notes
