"""The right and wrong answers to an exercise's problems, which its test cells must accept and reject.

A lab's are in tests/labs/NN_topic/exercise_answers/PROBLEM.toml, a table of entries `[[right]]` and `[[wrong]]`:

    [[wrong]]
    name = 'last_left_out'
    loses = ['multiply-fits', 'multiply-guard']     # the test cells that must fail, and no others
    reason = 'the last of \\d+ elements'             # a regular expression for the first message that the learner gets
    replace = [['if i < c.size:', 'if i < c.size - 1:']]

`replace` gives pairs of text, old and new, for the solution's cell; each old text must stand there once. Where more
differs, `answer` gives the whole cell. `thorough = true` leaves an entry to `make test-all`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.paths import COURSE

FOLDER = "exercise_answers"


@dataclass(frozen=True)
class Answer:
    """An answer to a problem. A right one loses no test cell; `reason`: regex for a wrong one's first message."""

    problem: str
    name: str
    cell: str
    loses: frozenset[str] = frozenset()
    reason: str = ""
    thorough: bool = False

    @property
    def id(self) -> str:
        return f"{self.problem}/{self.name}"


# A cell's nbgrader metadata are read here, so that the tests run on a GPU machine without nbgrader.


def cell_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def is_grade(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade", False)


def is_solution(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("solution", False)


def cells_by_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {cell_id(cell): cell for cell in notebook.cells if cell_id(cell)}


def answers_and_tests(notebook: NotebookNode) -> dict[str, list[str]]:
    """Map the id of each answer cell to the ids of the test cells that follow it."""
    found: dict[str, list[str]] = {}
    answer = ""
    for cell in notebook.cells:
        if is_solution(cell):
            answer = cell_id(cell)
            found[answer] = []
        elif is_grade(cell):
            found[answer].append(cell_id(cell))
    return found


def source_notebook(topic: str, course: Path = COURSE) -> NotebookNode:
    return nbformat.read(course / "solutions" / topic / f"{topic}.ipynb", as_version=4)


def right_answers(topic: str) -> list[Answer]:
    """Return the right answers of a lab's exercise, besides its solution."""
    return [answer for answer in _of_lab(topic) if not answer.loses]


def wrong_answers(topic: str) -> list[Answer]:
    """Return the wrong answers of a lab's exercise."""
    return [answer for answer in _of_lab(topic) if answer.loses]


def _of_lab(topic: str) -> list[Answer]:
    return read_answers(COURSE / "tests" / "labs" / topic / FOLDER, source_notebook(topic))


def read_answers(folder: Path, notebook: NotebookNode) -> list[Answer]:
    """Read the tables of a folder. Raises AssertionError where one does not fit the exercise's source notebook."""
    cells, found = cells_by_id(notebook), []
    for path in sorted(folder.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        assert path.stem in cells, f"{path.name}: the exercise has no cell {path.stem}"
        assert table.keys() <= {"right", "wrong"}, f"{path.name}: has more than [[right]] and [[wrong]]: {[*table]}"
        solution = solved(cells[path.stem].source)
        for kind, wanted in (("right", set()), ("wrong", {"loses", "reason"})):
            for entry in table.get(kind, []):
                where = f"{path.name}: {entry.get('name', 'an entry without a name')}"
                assert not (problem := _problem(entry, wanted)), f"{where}: {problem}"
                cell = entry.pop("answer", None) or _replaced(solution, entry.pop("replace"), where)
                loses = frozenset(entry.pop("loses", ()))
                found.append(Answer(path.stem, cell=cell, loses=loses, **entry))
                assert bool(loses) == (kind == "wrong"), where
    return found


def _problem(entry: dict[str, object], wanted: set[str]) -> str:
    """Return what is wrong with the form of an entry, which must have the keys `wanted`; "" if nothing is."""
    forms = {"name": str, "answer": str, "replace": list, "loses": list, "reason": str, "thorough": bool}
    if unlike := {"name", *wanted} ^ (entry.keys() - {"answer", "replace", "thorough"}):
        return f"lacks, or has too much: {', '.join(sorted(unlike))}"
    if len(entry.keys() & {"answer", "replace"}) != 1:
        return "has to have either `answer` or `replace`"
    if other := [key for key, value in entry.items() if not isinstance(value, forms[key])]:
        return f"`{other[0]}` is no {forms[other[0]].__name__}"
    pairs = entry.get("replace", [["old", "new"]])
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return "`replace` is no list of pairs [old, new]"
    if "reason" in entry and re.search(entry["reason"], "Q: z"):
        return "`reason` matches any message"
    return ""


def solved(source: str) -> str:
    """Return a solution's cell without its marks, and without the given text that it switches off by `#if 0`."""
    text = re.sub(r"(?m)^.*(?:BEGIN|END) SOLUTION.*\n?", "", source)
    return re.sub(r"(?m)^#if 0\n(?:.*\n)*?#endif\n", "", text).strip("\n") + "\n"


def _replaced(text: str, pairs: list[list[str]], where: str) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, f"{where}: stands {text.count(old)} times in the solution: {old}"
        text = text.replace(old, new)
    return text
