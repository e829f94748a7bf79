"""Hostile answers to the exercises of the labs, each graded with the tests of its problem, in the sandbox.

tests/warpcourse/grading/attacks/labs_*.toml hold them as `[[attack]]`, and beside them, as `[[honest]]`, right answers
that a defence could hit:

    [[attack]]
    lab = '14_scan'
    problem = 'run'                       # the answer cell
    name = 'given_arrays_changed'
    tries = 'one sentence'
    holds = ['run-adds']                  # the test cells that give their points all the same; [] by default
    reason = 'a regex'                    # for the first message, "" if nothing is lost
    open = true                           # gets more than it deserves, which the page tells

`answer` and `replace` are those of the tables of answers (exercise_answers.py).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from tests.support.exercise_answers import answers_and_tests, cell_id, cells_by_id, solved, source_notebook
from tests.support.grading_harness import WIDE, Cells, Graded
from warpcourse.bench.lab import labs
from warpcourse.grading.frameworks import TENSORFLOW
from warpcourse.grading.judge.framework_cells import framework_of
from warpcourse.grading.judge.judge import trusted_cells
from warpcourse.grading.sandbox.kernel_manager import Zygotes
from warpcourse.paths import COURSE

FOLDER = COURSE / "tests" / "warpcourse" / "grading" / "attacks"


@dataclass(frozen=True)
class LabAttack:
    """A hostile or an honest answer. `holds`: test cells that give points; `possible`: points of the problem."""

    lab: str
    problem: str
    name: str
    tries: str
    answer: str
    holds: frozenset[str]
    reason: str = ""
    honest: bool = False
    open: bool = False

    @property
    def id(self) -> str:
        return f"{self.lab[:2]}/{self.problem}/{self.name}"

    def points(self, tests: frozenset[str]) -> float:
        cells = cells_by_id(_notebook(self.lab))
        return sum(cells[test].metadata["nbgrader"]["points"] for test in tests)

    @property
    def tests(self) -> frozenset[str]:
        return frozenset(answers_and_tests(_notebook(self.lab))[self.problem])

    @property
    def warmth(self) -> str:
        return "course" if framework_of(trusted_cells(_notebook(self.lab))[1]) is None else TENSORFLOW.warmth


def lab_attacks() -> list[LabAttack]:
    """Return those of all labs that are there, in the order of their files."""
    return [attack for path in sorted(FOLDER.glob("labs_*.toml")) for attack in _read(path)]


def _read(path) -> list[LabAttack]:
    found, there = [], {one.slug for lab in labs() for one in lab.exercises}
    for kind, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for entry in (entry for entry in entries if entry["lab"] in there):
            where = f"{path.name}: {entry['name']}"
            notebook = _notebook(entry["lab"])
            text = entry.pop("answer", None)
            if text is None:
                text = solved(cells_by_id(notebook)[entry["problem"]].source)
                for old, new in entry.pop("replace"):
                    assert text.count(old) == 1, f"{where}: stands {text.count(old)} times in the solution: {old}"
                    text = text.replace(old, new)
            honest = {"attack": False, "honest": True}[kind]
            tests = frozenset(answers_and_tests(notebook)[entry["problem"]])
            holds = tests if honest else frozenset(entry.pop("holds", ()))
            assert holds <= tests, where
            found.append(LabAttack(answer=text.strip("\n"), holds=holds, honest=honest, **entry))
    return found


@cache
def _notebook(lab: str):
    return source_notebook(lab)


def graded(attack: LabAttack, zygotes: Zygotes) -> Graded:
    """Grade the answer with the given cells and the tests of its problem, and no others."""
    notebook, cells = source_notebook(attack.lab), Cells()
    tests, setup = trusted_cells(notebook)
    wanted = {*setup, attack.problem, *attack.tests}
    kept = [cell for cell in notebook.cells if cell.cell_type == "code" and cell_id(cell) in wanted]
    notebook.cells = cells.notebook.cells = kept
    cells.tests = {name: text for name, text in tests.items() if name in wanted}
    cells.setup = setup
    given = next(cell for cell in kept if cell_id(cell) == attack.problem)
    cells.answers = {attack.problem: given.source}
    given.source = attack.answer
    return cells.run(zygotes, WIDE if attack.warmth == "course" else WIDE.for_framework(TENSORFLOW))
