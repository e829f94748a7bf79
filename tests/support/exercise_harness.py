"""What the tests of an exercise share: its cells, its wrong answers, and a shell that runs answers and test cells.

`ExerciseTests` is the base class of a lab's own tests. `Session` runs an answer and the test cells of its problem in
this process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.notebooknode import NotebookNode
from traitlets.config import Config

import warplab
from warplab.checks import session as checks_session
from warplab.hardware import backend
from warplab.paths import COURSE

# The inputs that checks draw. One seed, so that a run can be repeated; that other draws give the same verdicts is what
# `for s in 1 2 3; do WARPLAB_SEED=$s make test TEST_ARGS="tests/labs -k test_exercise"; done` shows.
SEED = int(os.environ.get("WARPLAB_SEED", "2017"))

# A cell's nbgrader metadata are read here, so that the tests run on a GPU machine without nbgrader.


def cell_id(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def is_grade(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("grade", False)


def is_solution(cell: NotebookNode) -> bool:
    return cell.metadata.get("nbgrader", {}).get("solution", False)


def source_notebook(topic: str, course: Path = COURSE) -> NotebookNode:
    return nbformat.read(course / "solutions" / topic / f"{topic}.ipynb", as_version=4)


def git(*arguments: str) -> bytes | None:
    """Return what a git command on the course prints; None if it fails, as it does without git or a checkout."""
    if not shutil.which("git"):
        return None
    done = subprocess.run(["git", *arguments], cwd=COURSE, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def committed(path: str) -> bytes:
    """Return a file as committed, since a learner may have written into it; from disk if there is no commit."""
    content = git("show", f"HEAD:{path}")
    return (COURSE / path).read_bytes() if content is None else content


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


@dataclass(frozen=True)
class Mutant:
    """A wrong answer. `loses`: the test cells that must fail, and no others; `reason`: regex for the first message."""

    path: Path
    problem: str
    loses: frozenset[str]
    reason: str
    cell: str


def mutants(topic: str) -> list[Mutant]:
    """Read the wrong answers of a lab's exercise."""
    return read_mutants(COURSE / "tests" / "labs" / topic / "mutants")


def read_mutants(folder: Path) -> list[Mutant]:
    """Read a folder of wrong answers: files of three header lines, then the source of the answer cell."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".py", ".cu"):
            continue
        *head, body = path.read_text().split("\n", 3)
        fields = dict(re.fullmatch(r"(?:#|//) (problem|loses|reason): (.+)", line).groups() for line in head)
        cell = "%%cuda\n" + body if path.suffix == ".cu" else body
        loses = frozenset(fields["loses"].split(", "))
        found.append(Mutant(path, fields["problem"], loses, fields["reason"], cell))
    return found


class Session:
    """An IPython shell for one exercise. Every answer starts with the names that the given cells define, no others."""

    def __init__(self, topic: str) -> None:
        self.notebook = source_notebook(topic)
        self.cells, self.tests = cells_by_id(self.notebook), answers_and_tests(self.notebook)
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell.instance(config=config, colors="nocolor")
        warplab.load_ipython_extension(self.shell)  # in a notebook, the import does this
        self.given: dict[str, object] | None = None

    def run(self, source: str) -> str:
        """Run one cell; return "" or "ErrorClass: message"."""
        result = self.shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        return "" if error is None else f"{type(error).__name__}: {error}"

    def failures(self, problem: str, answer: str) -> dict[str, str]:
        """Return the message of each test cell of a problem that fails when `answer` stands in its answer cell."""
        self._start()
        seeds = np.random.default_rng([SEED, zlib.crc32(answer.encode())])
        print(f"seeds of the checks: from WARPLAB_SEED={SEED}")
        drawn = checks_session.Session(lambda: int(seeds.integers(2**32)), checks_session.device())
        with checks_session.using(drawn):
            self.run(answer)
            replaced = self._replaced()
            assert not replaced, f"the answer replaces {replaced}, which given kernels compiled before would not notice"
            messages = {test: self.run(self.cells[test].source) for test in self.tests[problem]}
        assert messages
        return {test: message for test, message in messages.items() if message}

    def _start(self) -> None:
        """Restore the names that the given cells define. They run once, and what they compile is used again."""
        if self.given is not None:
            self.shell.user_ns.clear()
            self.shell.user_ns.update(self.given)
            return
        self.shell.reset(new_session=False)
        for cell in self.notebook.cells:
            about = cell.metadata.get("nbgrader", {})
            if cell.cell_type == "code" and about.get("locked") and not about.get("grade"):
                error = self.run(cell.source)
                assert not error, error
        self.given = dict(self.shell.user_ns)

    def _replaced(self) -> list[str]:
        """List the names of the given cells that now stand for something else."""
        now = {name: self.shell.user_ns.get(name) for name in self.given}
        changed = [name for name, value in self.given.items() if now[name] is not value]
        return [name for name in changed if not isinstance(now[name], int) or now[name] != self.given[name]]


class ExerciseTests:
    """The tests of one exercise; a lab derives from it in tests/labs/NN_topic/test_exercise.py.

    `topic`: name of the exercise. `points`: maps the id of each answer cell to the points of its test cells, in order.
    `gaps`: the number of marked regions in the answer cells. `least_mutants`: how many wrong answers there must be, in
    all; each problem must have five.
    """

    topic: ClassVar[str]
    points: ClassVar[dict[str, list[int]]]
    gaps: ClassVar[int]
    least_mutants: ClassVar[int]

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        if "mutant" in metafunc.fixturenames:
            metafunc.parametrize("mutant", mutants(cls.topic), ids=lambda mutant: mutant.path.stem)

    @pytest.fixture(scope="class")
    @classmethod
    def session(cls) -> Session:
        return Session(cls.topic)

    @pytest.fixture
    def release(self):
        """The module that generates releases; it needs nbgrader."""
        from warplab.exercises import release

        return release

    def test_release_is_generated_from_source(self, release):
        """On disk, if an author has yet to commit it, or as committed, if a learner has written into it."""
        folder, wanted = f"exercises/{self.topic}", release.release_files(self.topic)
        stale = [
            path
            for path, content in wanted.items()
            if content not in ((COURSE / folder / path).read_bytes(), committed(f"{folder}/{path.as_posix()}"))
        ]
        assert stale == [], "run make exercises"
        tracked = git("ls-files", folder)
        if tracked is not None:
            assert set(tracked.decode().split()) <= {f"{folder}/{path.as_posix()}" for path in wanted}

    def test_solving_only_fills_the_marked_gaps(self, release):
        """Release and source have the same cells and differ only inside the marked regions."""
        source, given = source_notebook(self.topic).cells, release.release_notebook(self.topic).cells
        assert [cell.id for cell in source] == [cell.id for cell in given]
        gaps = 0
        for solved, blank in zip(source, given, strict=True):
            text = solved.source
            if is_solution(solved):
                text, count = re.subn(r"(?m)^( *).*BEGIN SOLUTION.*\n(?:.*\n)*?.*END SOLUTION.*$", r"\1", text)
                gaps += count
            elif is_grade(solved):
                text, count = re.subn(r"(?m)^.*BEGIN HIDDEN TESTS.*\n(?:.*\n)*?.*END HIDDEN TESTS.*(?:\n|$)", "", text)
                assert count == 1, cell_id(solved)
                assert text.rstrip() != solved.source.rstrip()
            assert blank.source.rstrip("\n") == text.rstrip("\n"), solved.id
        assert gaps == self.gaps

    def test_release_shows_no_solution_and_no_hidden_test(self):
        text = committed(f"exercises/{self.topic}/{self.topic}.ipynb").decode()
        assert not re.search("BEGIN SOLUTION|END SOLUTION|HIDDEN TESTS", text)

    def test_points(self, session):
        cells = session.cells
        found = {p: [cells[t].metadata.nbgrader.points for t in tests] for p, tests in session.tests.items()}
        assert found == self.points
        for name, cell in cells.items():
            assert cell.metadata.nbgrader.schema_version == 3, name
            assert cell.metadata.nbgrader.locked != is_solution(cell), name

    def test_solution_gets_every_point(self, session):
        for problem in session.tests:
            assert session.failures(problem, session.cells[problem].source) == {}

    def test_blank_gets_no_point(self, session, release):
        given = cells_by_id(release.release_notebook(self.topic))
        for problem, tests in session.tests.items():
            assert session.failures(problem, given[problem].source).keys() == set(tests)

    def test_mutant_is_rejected_for_its_reason(self, session, mutant):
        failures = session.failures(mutant.problem, mutant.cell)
        assert failures.keys() == mutant.loses
        first = next(failures[test] for test in session.tests[mutant.problem] if test in failures)
        assert re.search(mutant.reason, first), first

    def test_there_are_enough_mutants(self, session):
        found = mutants(self.topic)
        count = Counter(mutant.problem for mutant in found)
        assert count.keys() == session.tests.keys()
        assert min(count.values()) >= 5
        assert [mutant.path.name for mutant in found if re.search(mutant.reason, "")] == []  # which any message matches
        assert len(found) == len({(m.problem, m.cell.strip()) for m in found}) >= self.least_mutants

    @pytest.mark.gpu
    def test_a_gpu_changes_no_grade(self, session):
        """With the real numba.cuda and cupy, the same answers win and lose the same points."""
        assert backend.name() == "gpu"
        for problem in session.tests:
            assert session.failures(problem, session.cells[problem].source) == {}
        for mutant in mutants(self.topic):
            assert session.failures(mutant.problem, mutant.cell).keys() == mutant.loses, mutant.path.name
