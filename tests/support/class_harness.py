"""Classes to grade: a tiny assignment with two cheap tests, and classes of the sample exercise with known scores."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat.notebooknode import NotebookNode

from tests.support.exercise_answers import answers_and_tests, cells_by_id, is_grade
from tests.support.sample import SAMPLE, SAMPLE_COURSE, sample_release, sample_source, sample_wrong
from warpcourse.exercises import release
from warpcourse.grading.course.ledger import records
from warpcourse.paths import COURSE

TINY = "90_tiny"
RIGHT = "def double(x):\n    return 2 * x"
CANARY = "hidden_canary_7411"


def tiny_cell(name: str, source: str, points: int | None = None, **kind: bool) -> NotebookNode:
    """Return a cell of the exercise. `kind`: grade, solution, locked."""
    metadata = {
        "grade_id": name,
        "schema_version": 3,
        "task": False,
        "grade": False,
        "solution": False,
        "locked": False,
    }
    metadata |= kind | ({} if points is None else {"points": points})
    cell = nbformat.v4.new_code_cell(source, metadata={"nbgrader": metadata})
    cell.id = name
    return cell


def tiny_source() -> NotebookNode:
    """Return the instructor's notebook: 3 points for two tests, both with a hidden part."""
    hidden = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
    first = "assert double(2) == 4\n" + hidden.format(f"{CANARY} = 21\nassert double({CANARY}) == 42")
    # It uses a name of the setup cell and one of the first test.
    second = "assert double(OFFSET) == 20\n" + hidden.format(f"assert double({CANARY} + 1) == 44")
    heading = nbformat.v4.new_markdown_cell("## 1. Double")
    heading.id = "heading"
    solution = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
    cells = [
        tiny_cell("setup", "OFFSET = 10", locked=True),
        heading,
        tiny_cell("double", solution, solution=True),
        tiny_cell("test-one", first, 1, grade=True, locked=True),
        tiny_cell("test-two", second, 2, grade=True, locked=True),
    ]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def tiny_course(root: Path, *settings: str) -> Path:
    """Make a course with the tiny assignment. `settings`: more lines of nbgrader_config.py."""
    folder = root / "solutions" / TINY
    folder.mkdir(parents=True)
    nbformat.write(tiny_source(), folder / f"{TINY}.ipynb")
    text = (COURSE / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text("\n".join([text, *settings, ""]))
    return root


def tiny_release(root: Path) -> NotebookNode:
    """Return what a student of the tiny course starts from."""
    return nbformat.reads(release.release_text(root / "solutions" / TINY / f"{TINY}.ipynb"), as_version=4)


def hand_in(root: Path, student: str, notebook: NotebookNode | bytes, assignment: str = TINY, when: str = "") -> Path:
    """Put a submission where nbgrader's collect puts it. `when`: for timestamp.txt."""
    folder = root / "grading" / "submitted" / student / assignment
    folder.mkdir(parents=True, exist_ok=True)
    content = notebook if isinstance(notebook, bytes) else nbformat.writes(notebook).encode()
    (folder / f"{assignment}.ipynb").write_bytes(content)
    if when:
        (folder / "timestamp.txt").write_text(when)
        (folder / "submission_secret.txt").write_text("ab" * 64)  # without it, nbgrader did not write the other
    return folder


def answered(root: Path, answer: str, edit: Callable[[NotebookNode], None] | None = None) -> NotebookNode:
    """Return the tiny release with an answer in it, changed by `edit`."""
    notebook = tiny_release(root)
    cells_by_id(notebook)["double"].source = answer
    if edit is not None:
        edit(notebook)
    return notebook


def gradebook(root: Path) -> dict[str, Any]:
    """Return the gradebook's data on submissions, without the ids that nbgrader draws."""
    path = root / "grading" / "gradebook.db"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        submissions = database.execute(
            "select s.student_id, a.name, s.timestamp, n.late_submission_penalty, n.id from submitted_notebook n "
            "join submitted_assignment s on n.assignment_id = s.id join assignment a on s.assignment_id = a.id"
        ).fetchall()
        found = {}
        for student, assignment, timestamp, penalty, notebook in submissions:
            grades = database.execute(
                "select c.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade from grade g "
                "join base_cell c on g.cell_id = c.id where g.notebook_id = ? order by c.name",
                [notebook],
            ).fetchall()
            comments = database.execute(
                "select c.name, m.auto_comment, m.manual_comment from comment m "
                "join base_cell c on m.cell_id = c.id where m.notebook_id = ? order by c.name",
                [notebook],
            ).fetchall()
            found[f"{assignment}/{student}"] = (timestamp, penalty, grades, comments)
    return found


def scores(root: Path, assignment: str = TINY) -> dict[str, list[float | None]]:
    """Return student -> automatic score of each test cell, in order of their names."""
    return {
        name.partition("/")[2]: [grade[1] for grade in grades]
        for name, (_, _, grades, _) in gradebook(root).items()
        if name.startswith(f"{assignment}/")
    }


@dataclass(frozen=True)
class Student:
    """A generated student of the sample exercise.

    `answers`: answer cell -> "solution", "blank", or a wrong answer's name. `expected`: test cell -> points. `hostile`:
    the attack, one of HOSTILE, or "".
    """

    name: str
    answers: dict[str, str]
    expected: dict[str, float]
    hostile: str
    status: str


# Attacks without a wait: name -> (a cell of the student's own, is it the first cell?, status). None changes a point,
# because what is tested before a process ends counts. tests/warpcourse/grading/attacks has the others.
HOSTILE = {
    "patches": (
        "import numpy.testing, warplab.checks\n"
        "for name in ('kernel', 'function', 'examples', 'array'):\n"
        "    setattr(warplab.checks, name, lambda *arguments, **options: None)\n"
        "numpy.testing.assert_allclose = numpy.testing.assert_array_equal = lambda *arguments, **options: None",
        True,
        "graded",
    ),
    "reads": (
        "import glob, os\n"
        "for folder in ('.', '..', '/', '/course', '/home/*', '/root', '/srv', '/tmp'):\n"
        "    for path in glob.glob(f'{folder}/*/solutions/*/*') + glob.glob(f'{folder}/*/gradebook.db'):\n"
        "        print(open(path, 'rb').read())\n"
        "print(In, dict(os.environ))",
        False,
        "graded",
    ),
    "floods": ("for number in range(200):\n    print('x' * 100_000)", False, "graded"),
    "grabs": ("much = bytearray(100 << 30)", True, "graded"),
    "forks": ("import os\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(3600)", False, "graded"),
    "exits": ("import os\nos._exit(0)", False, "student_crash"),
    "kills": (
        "import os, signal\nfor number in (os.getppid(), 1, -1, os.getpid()):\n"
        "    try:\n        os.kill(number, signal.SIGKILL)\n    except OSError:\n        pass",
        False,
        "student_crash",
    ),
    "deletes tests": ("", False, "graded"),
}


def generated_class(root: Path, count: int, seed: int = 1, hostile: float = 0.0) -> list[Student]:
    """Make `root` a course in which `count` students have handed in `SAMPLE`, with the score that each must get.

    About half of the answers are the solution, a tenth are blank, the others are the sample's wrong answers. The
    fraction `hostile` of the students, rounded up, also attacks, in all ways of HOSTILE in turn.
    """
    rng = random.Random(seed)
    root.mkdir(parents=True, exist_ok=True)
    shutil.copytree(SAMPLE_COURSE / "solutions", root / "solutions")
    shutil.copy(COURSE / "nbgrader_config.py", root)
    source = sample_source()
    given = sample_release()
    tests, points = answers_and_tests(source), _points(source)
    solutions = {name: cell.source for name, cell in cells_by_id(source).items()}
    wrong: dict[str, list] = {}
    for one in sample_wrong():
        wrong.setdefault(one.problem, []).append(one)
    students: list[Student] = []
    attacks = itertools.cycle(HOSTILE)
    attackers = set(rng.sample(range(count), math.ceil(hostile * count)))
    for number in range(count):
        notebook = nbformat.from_dict(given)
        cells, answers, expected = cells_by_id(notebook), {}, dict(points)
        for answer in tests:
            draw = rng.random()
            if draw < 0.5:
                answers[answer], cells[answer].source = "solution", solutions[answer]
            elif draw < 0.6:
                answers[answer] = "blank"
                expected.update(dict.fromkeys(tests[answer], 0.0))
            else:
                one = rng.choice(wrong[answer])
                answers[answer], cells[answer].source = one.name, one.cell
                expected.update(dict.fromkeys(one.loses, 0.0))
        attack = next(attacks) if number in attackers else ""
        status = _attack(notebook, attack) if attack else "graded"
        students.append(Student(f"student{number:04}", answers, expected, attack, status))
        hand_in(root, students[-1].name, notebook, SAMPLE)
    return students


def _attack(notebook: NotebookNode, name: str) -> str:
    """Add an attack of HOSTILE to a submission. Return the status that it must get."""
    text, first, status = HOSTILE[name]
    if text:
        notebook.cells.insert(0 if first else len(notebook.cells), nbformat.v4.new_code_cell(text))
    else:
        notebook.cells = [cell for cell in notebook.cells if not is_grade(cell)]
    return status


def _points(source: NotebookNode) -> dict[str, float]:
    return {
        cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points) for cell in source.cells if is_grade(cell)
    }


def wrong_scores(folder: Path, students: list[Student]) -> list[str]:
    """Return descriptions of wrong scores in the gradebook."""
    found = gradebook(folder)
    wrong = []
    for student in students:
        got = {grade[0]: grade[1] for grade in found[f"{SAMPLE}/{student.name}"][2]}
        if got != student.expected:
            wrong.append(f"{student.name} ({student.hostile or 'honest'}): {got}, expected {student.expected}")
    return wrong


def wrong_statuses(folder: Path, students: list[Student]) -> list[str]:
    """Return descriptions of wrong statuses in the ledger."""
    found = {r["student"]: r["status"] for r in records(folder / "grading" / "ledger") if r["kind"] == "result"}
    return [
        f"{student.name} ({student.hostile or 'honest'}): {found.get(student.name)}, expected {student.status}"
        for student in students
        if found.get(student.name) != student.status
    ]


def own_bytes(process: psutil.Process) -> int:
    """Return the proportional set size, in which a page that several processes share counts once in all."""
    with contextlib.suppress(psutil.Error, OSError):
        return process.memory_full_info().pss
    return 0
