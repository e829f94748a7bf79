"""An assignment to attack, a class of hostile and honest students, and the results.

Each file of tests/warpcourse/grading/attacks/GROUP is a submission. Its header says what it tries and gets:

    # tries: one sentence
    # expects: STATUS and points of the five tests; those of the last are 0 if it has only four
    # word: a regex found in the reason or the notes (default: anything)
    # stock: points of the first three tests under stock nbgrader; "none" if it has no score, "got" if the attack gets
    #        what it is after, "shown" if its outputs contain hidden arguments. Without this line it is not run there.
    # limits: as "expects", for root without bubblewrap, if that differs; "got" as above
    # tight: "yes" gives less memory, processes and output than usual, so that the attack is quick. If its verdict is
    #        about time, "cell 4" or "notebook 8" also gives less time, in seconds. Honest cells must fit into it.
    # edit: a function of edits.py

Attacks of the group "page" are after whoever opens them in a browser, in which `taken_over` opens them. Those of the
group "tensorflow" are for a `Target` that uses TensorFlow, as `tf`; their tests are the first three.

Cells follow in percent format. The text before the first mark answers "double"; a mark names the cell that the text
answers, or "own" for a cell of the student's at the end. An attack on something other than points prints GOT and what
it got, or TRIED. @COURSE@, @PORT@, @NAME@ stand for the grading machine's folder of the course, a port that it listens
on, and the assignment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException

from tests.support import chromium, pages
from tests.support.class_harness import hand_in, scores, tiny_cell
from tests.support.exercise_answers import cells_by_id, is_grade
from tests.support.waiting import HANG, until
from tests.warpcourse.grading.attacks import edits
from warpcourse.exercises import release
from warpcourse.grading.course import feedback
from warpcourse.grading.course.coordinator import Grading
from warpcourse.grading.course.gradebook import Book, create_gradebook
from warpcourse.grading.course.ledger import Ledger
from warpcourse.grading.course.nbgrader_course import Course
from warpcourse.grading.course.workers import Executor
from warpcourse.grading.judge.jobs import Job, Result
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.paths import COURSE

FOLDER = COURSE / "tests" / "warpcourse" / "grading" / "attacks"
TENSORFLOW = "tensorflow"  # the group
NAME = "91_target"
TESTS = ("test-1-array", "test-2-values", "test-3-answer", "test-4-kernel", "test-5-kernel")
POINTS = (1.0, 2.0, 1.0, 1.0, 1.0)
TIGHT = SubmissionLimits(memory_bytes=1 << 30, traffic_bytes=64 << 20, processes=24)
WRONG = {"double": "def double(x):\n    return x", "answer": "answer = 0", "scale": "scale = None"}
RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "answer": "answer = 42",
    "scale": "@cuda.jit\ndef scale(x, y):\n    i = cuda.grid(1)\n    if i < y.size:\n        y[i] = 3 * x[i]",
}


@dataclass(frozen=True)
class Expected:
    """The outcome of an attack. `scores`: of the tests, None if there is none. `flags`: "got", "shown"."""

    status: str
    scores: tuple[float, ...] | None
    flags: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str, status: str | None = None) -> Expected:
        words = text.split()
        if status is None:
            status, *words = words
        numbers = tuple(float(word) for word in words if re.fullmatch(r"[\d.]+", word))
        if len(numbers) == len(TESTS) - 1:
            numbers = (*numbers, 0.0)
        return cls(status, numbers or None, frozenset(words) & {"got", "shown"})


@dataclass(frozen=True)
class Attack:
    """One hostile submission. `cells`: name of the cell -> its text."""

    name: str
    tries: str
    expects: Expected
    stock: Expected | None
    limits: Expected
    word: str
    tight: str
    edit: str
    cells: dict[str, str] = field(repr=False)

    @property
    def student(self) -> str:
        return self.name.replace("/", "-").replace("_", "-")

    @property
    def prints(self) -> bool:
        """Return whether it says that it ran."""
        return any("TRIED" in text for text in self.cells.values())


def attacks() -> list[Attack]:
    """Return the attacks of all groups but `TENSORFLOW`."""
    return [_read(path) for path in sorted(FOLDER.glob("*/*.py")) if path.parent.name != TENSORFLOW]


def tensorflow_attacks() -> list[Attack]:
    return [_read(path) for path in sorted(FOLDER.glob(f"{TENSORFLOW}/*.py"))]


def _read(path: Path) -> Attack:
    lines = path.read_text().splitlines()
    count = next((number for number, line in enumerate(lines) if not re.match(r"# \w+: ", line)), len(lines))
    head = dict(line[2:].split(": ", 1) for line in lines[:count])
    known = {"tries", "expects", "word", "stock", "limits", "tight", "edit"}
    if not {"tries", "expects"} <= head.keys() <= known:
        raise ValueError(f"{path}: header lines {sorted(head)}, known are {sorted(known)}")
    first, *parts = re.split(r"^# %% (\w+)$", "\n".join(lines[count:]), flags=re.MULTILINE)
    cells = {"double": first.strip()} if first.strip() else {}
    cells |= {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}
    expects = Expected.parse(head["expects"])
    return Attack(
        f"{path.parent.name}/{path.stem}",
        head["tries"],
        expects,
        Expected.parse(head["stock"], "graded") if "stock" in head else None,
        Expected.parse(head["limits"]) if "limits" in head else expects,
        head.get("word", ""),
        head.get("tight", ""),
        head.get("edit", ""),
        cells,
    )


# -- the assignment --------------------------------------------------------------------------------------------


@dataclass
class Target:
    """A course under attack.

    `canary`: text that is in hidden tests only. `argument`: what a hidden test passes to a function. `seed`: the
    course's secret. `without_kernel`: leave out the GPU kernel, so that stock nbgrader need not import the course.
    `tensorflow`: a locked cell imports TensorFlow, so that submissions run in the processes for it.
    """

    root: Path
    without_kernel: bool = False
    port: int = 9
    canary: str = field(default_factory=lambda: f"hidden_canary_{secrets.randbelow(10**9):09}")
    argument: str = field(default_factory=lambda: f"hidden_argument_{secrets.randbelow(10**9):09}")
    seed: str = field(default_factory=lambda: f"secret-seed-{secrets.randbelow(10**9):09}")
    tensorflow: bool = False

    def __post_init__(self) -> None:
        folder = self.root / "solutions" / NAME
        folder.mkdir(parents=True)
        nbformat.write(self._source(), folder / f"{NAME}.ipynb")
        shutil.copy(COURSE / "nbgrader_config.py", self.root)
        self.release = nbformat.reads(release.release_text(folder / f"{NAME}.ipynb"), as_version=4)

    @property
    def secrets(self) -> dict[str, str]:
        return {"canary": self.canary, "argument": self.argument, "seed": self.seed}

    def _source(self) -> NotebookNode:
        def test(name: str, points: float, visible: str, hidden: str) -> NotebookNode:
            text = f"{visible}\n### BEGIN HIDDEN TESTS\n# {self.canary}\n{hidden}\n### END HIDDEN TESTS"
            return tiny_cell(name, text, int(points), grade=True, locked=True)

        def answer(name: str) -> NotebookNode:
            head, _, body = RIGHT[name].rpartition(":\n")
            mark = "    " if head else ""
            text = f"{head}{':' if head else ''}\n{mark}### BEGIN SOLUTION\n{body}\n{mark}### END SOLUTION"
            return tiny_cell(name, text.strip(), solution=True)

        canary = self.canary
        scaled = 'checks.elementwise(lambda x: 3 * x, ("x",), "y")'
        cells = [
            tiny_cell("setup", "import numpy as np\nfrom numpy.testing import assert_allclose", locked=True),
            answer("double"),
            test(
                TESTS[0],
                POINTS[0],
                "x = np.arange(5.0)\nassert_allclose(double(x), 2 * x)",
                f"{canary} = np.array([3.0, -1.5])\n"
                f'assert_allclose(double({canary}), 2 * {canary}, err_msg="{canary}")',
            ),
            test(
                TESTS[1],
                POINTS[1],
                "assert all(double(v) == 2 * v for v in (1, 2.5, 7))",
                f'assert all(double(v) == 2 * v for v in ("{self.argument}", "b")), "{canary}"',
            ),
            answer("answer"),
            test(
                TESTS[2],
                POINTS[2],
                "assert answer * 100_000 == 4_200_000, answer",
                f'assert abs(answer - 42) < 1, "{canary}"',
            ),
        ]
        if self.tensorflow:
            cells[0].source += "\nimport tensorflow as tf"
        if not self.without_kernel:
            cells[0].source += "\nfrom warplab import checks, cuda"
            cells += [
                answer("scale"),
                test(
                    TESTS[3],
                    POINTS[3],
                    f'checks.kernel(scale, {scaled}, language="Numba", sizes=(1, 33), launches=[checks.cover(32)])',
                    f"checks.kernel(scale, {scaled}, sizes=(65,), launches=[checks.cover(64)])  # {canary}",
                ),
                test(
                    TESTS[4],
                    POINTS[4],
                    f"checks.kernel(scale, {scaled}, sizes=(200,), launches=[checks.cover(32)])",
                    f"checks.kernel(scale, {scaled}, sizes=checks.drawn(2, 66, 999), launches=[checks.cover(64)])",
                ),
            ]
        kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
        return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})

    @property
    def given(self) -> tuple[str, ...]:
        return tuple(name for name in RIGHT if name in cells_by_id(self.release))

    def hand_in(self, student: str, answers: dict[str, str], edit: str = "") -> None:
        """Hand in a submission. Cells that `answers` does not name are answered wrong."""
        notebook = nbformat.from_dict(self.release)
        cells = cells_by_id(notebook)
        for name in self.given:
            cells[name].source = self._filled(answers.get(name, WRONG[name]))
        if "own" in answers:
            notebook.cells.append(nbformat.v4.new_code_cell(self._filled(answers["own"])))
        folder = self.root / "grading" / "submitted" / student / NAME
        content: Any = notebook
        if edit:
            folder.mkdir(parents=True)
            content = getattr(edits, edit)(notebook, folder) or notebook
        path = folder / f"{NAME}.ipynb"
        replaced = folder.is_symlink() or folder.parent.is_symlink() or not (folder.is_dir() or not folder.exists())
        if not (replaced or path.is_symlink() or path.is_dir()):
            hand_in(self.root, student, content, NAME)

    def _filled(self, text: str) -> str:
        return text.replace("@COURSE@", str(self.root)).replace("@PORT@", str(self.port)).replace("@NAME@", NAME)

    def hand_in_all(self, chosen: Iterable[Attack]) -> None:
        """Hand in the attacks and three honest submissions: one right, two wrong, one of these an attacker's friend."""
        for attack in chosen:
            self.hand_in(attack.student, attack.cells, attack.edit)
        self.hand_in("honest-right", RIGHT)
        self.hand_in("honest-wrong", {})
        self.hand_in("honest-friend", {})

    def honest(self) -> dict[str, tuple[float, ...]]:
        count = 3 if self.without_kernel else len(TESTS)
        wrong = (0.0,) * count
        return {"honest-right": POINTS[:count], "honest-wrong": wrong, "honest-friend": wrong}

    # -- what came of it -----------------------------------------------------------------------------------------

    def scores(self) -> dict[str, tuple[float | None, ...]]:
        return {student: tuple(values) for student, values in scores(self.root, NAME).items()}

    def outputs(self, student: str, tests: bool = True) -> str:
        """Return the text of all outputs of the student's cells, and of the tests if wanted."""
        path = self.root / "grading" / "autograded" / student / NAME / f"{NAME}.ipynb"
        if not path.exists():
            return ""
        cells = nbformat.read(path, as_version=4).cells
        return "\n".join(_texts(cell.get("outputs", [])) for cell in cells if tests or not is_grade(cell))

    def told_by_errors(self, student: str) -> bytes:
        """Return what the cells of `edits.add_cells_that_fail` tell."""
        path = self.root / "grading" / "autograded" / student / NAME / f"{NAME}.ipynb"
        return edits.hidden_argument_in_errors(nbformat.read(path, as_version=4)) if path.exists() else b""

    def shown(self, student: str) -> bytes:
        """Return every byte that the student gets back."""
        folder = self.root / "grading" / "feedback" / student
        return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "\n".join(_texts(part) for part in parts)


# -- grading ---------------------------------------------------------------------------------------------------


class Tightened:
    """An executor that gives some students' jobs tight limits."""

    def __init__(self, executor: Executor, chosen: Iterable[Attack]) -> None:
        self._executor = executor
        self._tight = {attack.student: attack.tight.split() for attack in chosen if attack.tight}

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        return self._executor.run(map(self._tightened, jobs))

    def _tightened(self, job: Job) -> Job:
        tight = self._tight.get(job.key.student)
        if tight is None:
            return job
        what, seconds = tight[0], int(tight[-1]) if tight[1:] else 0
        limits = dataclasses.replace(TIGHT, wall_seconds=seconds) if what == "notebook" else TIGHT
        return dataclasses.replace(job, limits=limits, cell_seconds=seconds if what == "cell" else job.cell_seconds)


def grade(target: Target, chosen: Iterable[Attack], executor: Executor) -> dict[str, dict[str, Any]]:
    """Grade the class and make its feedback. Return student -> result in the ledger."""
    course = Course(target.root)
    assignment = course.assignment(NAME)
    with _environment("WARPLAB_GRADING_SEED", target.seed), Ledger(course.grading / "ledger") as ledger:
        book = Book(course, assignment)
        try:
            grading = Grading(course, assignment, ledger, book)
            grading.survey()
            grading.grade(Tightened(executor, chosen))
            list(feedback.write_pages(course, assignment, ledger, book.standings().values(), 1))
        finally:
            book.close()
        return grading.records


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@dataclass
class Listener:
    """A port of this machine and an abstract socket. `heard`: what was sent to them."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @contextlib.contextmanager
    def open(self) -> Iterator[Listener]:
        with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as local:
            tcp.bind(("127.0.0.1", 0))
            self.port = tcp.getsockname()[1]
            local.bind(f"\0warplab-attack-{self.port}")
            for listener in (tcp, local):
                listener.listen(4)
                threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            yield self
            for listener in (tcp, local):
                listener.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(5)
                    self.heard.append(connection.recv(1 << 16))


def left_behind() -> list[int]:
    """Return processes whose name says that an attack started them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == "warplab-attack":
                found.append(int(path.parent.name))
    return found


def seen(target: Target, attack: Attack, record: dict[str, Any]) -> Expected:
    """Return what came of an attack that the grader graded."""
    flags = set()
    if re.search(r"^GOT", target.outputs(attack.student), re.MULTILINE):
        flags.add("got")
    if target.argument.encode() in target.shown(attack.student) + target.told_by_errors(attack.student):
        flags.add("shown")
    return Expected(record["status"], target.scores()[attack.student], frozenset(flags))


def taken_over(target: Target, chosen: Iterable[Attack]) -> dict[str, str]:
    """Open what instructors and students open of each attack: its page of the formgrader, and its feedback page.

    Return attack -> what a script of the student's did: "" if none ran, "ran", "took over".
    """
    with Gradebook(Course(target.root).db_url) as book:
        entries = {entry.student.id: entry.id for entry in book.notebook_submissions(NAME, NAME)}
    done = {}
    with pages.formgrader(target.root) as server, chromium.chromium() as browser:
        pages.log_in(browser, server)
        for attack in chosen:
            address = server.address(f"formgrader/submissions/{entries[attack.student]}/")
            done[attack.name] = pages.script_ran(browser, address, server)
            page = target.root / "grading" / "feedback" / attack.student / NAME / f"{NAME}.html"
            if page.exists() and not done[attack.name]:
                done[attack.name] = pages.script_ran(browser, page.as_uri())
    return done


def told(record: dict[str, Any]) -> str:
    return json.dumps([record["reason"], *record["notes"]])


# -- stock nbgrader ----------------------------------------------------------------------------------------------


def autograde_by_stock_nbgrader(target: Target) -> None:
    """Run `nbgrader autograde` with nbgrader's own preprocessors, then give processes left behind time to act."""
    course = Course(target.root)
    course.config.pop("Autograde")
    course.config.Execute.timeout = int(HANG)
    course.directory.assignment_id = NAME
    create_gradebook(course)  # as nbgrader does, without starting a process for the version of its schema
    with _environment("WARPLAB_GRADING_SEED", target.seed):
        GenerateAssignment(coursedir=course.directory, config=course.config).start()
        # It gives some submissions no score, and then fails after the others are done.
        with contextlib.suppress(NbGraderException):
            Autograde(coursedir=course.directory, config=course.config).start()
    if (target.root / "grading" / "submitted" / "tamper-gradebook").exists():
        until(lambda: target.scores()["honest-friend"] != (0.0, 0.0, 0.0), "the attack on the gradebook")


def stock_seen(target: Target, attack: Attack) -> Expected:
    """Return what came of an attack under stock nbgrader."""
    outputs = target.outputs(attack.student)
    flags = {"got"} if re.search(r"^GOT", outputs, re.MULTILINE) else set()
    if target.argument in target.outputs(attack.student, tests=False):  # which its feedback shows
        flags.add("shown")
    given = target.scores().get(attack.student)
    return Expected("graded", None if given is None or None in given else given, frozenset(flags))
