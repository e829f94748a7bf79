"""What the tests of an exercise share: its cells, and a shell that runs answers and test cells.

`ExerciseTests` is the base class of a lab's own tests. `Session` runs an answer and the test cells of its problem in
this process.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import symtable
import zlib
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.notebooknode import NotebookNode
from traitlets.config import Config

import warplab
from tests.support import verdicts
from tests.support.exercise_answers import (
    answers_and_tests,
    cell_id,
    cells_by_id,
    is_grade,
    is_solution,
    right_answers,
    solved,
    source_notebook,
    wrong_answers,
)
from warpcourse.paths import COURSE
from warplab.checks import session as checks_session
from warplab.hardware import backend

# The inputs that checks draw. One seed, so that a run can be repeated; that other draws give the same verdicts is what
# `for s in 1 2 3; do WARPLAB_SEED=$s make test TEST_ARGS="tests/labs -k test_exercise"; done` shows.
SEED = int(os.environ.get("WARPLAB_SEED", "2017"))


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
        """Run one cell; return "" or "ErrorClass: message". Ctrl-C ends the run: it is no verdict on an answer."""
        result = self.shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if isinstance(error, KeyboardInterrupt):
            raise error
        return "" if error is None else f"{type(error).__name__}: {error}"

    def failures(self, problem: str, answer: str) -> dict[str, str]:
        """Return the message of each test cell of a problem that fails when `answer` stands in its answer cell."""
        tests = [text for test in self.tests[problem] for text in (test, self.cells[test].source)]
        given = [cell.source for cell in self._given_cells()]
        return verdicts.verdict([str(SEED), problem, answer, *tests, *given], lambda: self._failures(problem, answer))

    def _failures(self, problem: str, answer: str) -> dict[str, str]:
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

    def _given_cells(self) -> list[NotebookNode]:
        """Return the cells that learners are given to run: code that they do not write and that tests nothing."""
        code = [cell for cell in self.notebook.cells if cell.cell_type == "code"]
        return [cell for cell in code if cell.metadata.get("nbgrader", {}).get("locked") and not is_grade(cell)]

    def _start(self) -> None:
        """Restore the names that the given cells define. They run once, and what they compile is used again."""
        if self.given is not None:
            self.shell.user_ns.clear()
            self.shell.user_ns.update(self.given)
            return
        self.shell.reset(new_session=False)
        for cell in self._given_cells():
            error = self.run(cell.source)
            assert not error, error
        self.given = dict(self.shell.user_ns)

    def _replaced(self) -> list[str]:
        """List the names of the given cells that now stand for something else."""
        now = {name: self.shell.user_ns.get(name) for name in self.given}
        changed = [name for name, value in self.given.items() if now[name] is not value]
        return [name for name in changed if not isinstance(now[name], int) or now[name] != self.given[name]]


def _names(cell: list[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return the names that these statements define for later cells, and those that they or their functions use."""
    module = symtable.symtable(ast.unparse(cell), "", "exec")

    def used(table: symtable.SymbolTable) -> set[str]:
        mine = {one.get_name() for one in table.get_symbols() if one.is_referenced()}
        mine -= set() if table is module else {one.get_name() for one in table.get_symbols() if not one.is_global()}
        return mine.union(*map(used, table.get_children()))

    return {one.get_name() for one in module.get_symbols() if one.is_assigned()}, used(module)


class ExerciseTests:
    """The tests of one exercise; a lab derives from it in tests/labs/NN_topic/test_exercise.py.

    `topic`: name of the exercise. `points`: maps the id of each answer cell to the points of its test cells, in order.
    `gaps`: the number of marked regions in the answer cells. `least_wrong`: how many wrong answers there must be, in
    all; each problem must have five.
    """

    pytestmark = pytest.mark.always

    topic: ClassVar[str]
    points: ClassVar[dict[str, list[int]]]
    gaps: ClassVar[int]
    least_wrong: ClassVar[int]

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        for kind, answers in (("right", right_answers), ("wrong", wrong_answers)):
            if kind in metafunc.fixturenames:
                marks = {True: [pytest.mark.thorough], False: []}
                found = [pytest.param(one, id=one.id, marks=marks[one.thorough]) for one in answers(cls.topic)]
                metafunc.parametrize(kind, found)

    @pytest.fixture(scope="class")
    @classmethod
    def session(cls) -> Session:
        return Session(cls.topic)

    @pytest.fixture
    def release(self):
        """The module that generates releases; it needs nbgrader."""
        from warpcourse.exercises import release

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
        for full, blank in zip(source, given, strict=True):
            text = full.source
            if is_solution(full):
                text, count = re.subn(r"(?m)^( *).*BEGIN SOLUTION.*\n(?:.*\n)*?.*END SOLUTION.*$", r"\1", text)
                gaps += count
            elif is_grade(full):
                text, count = re.subn(r"(?m)^.*BEGIN HIDDEN TESTS.*\n(?:.*\n)*?.*END HIDDEN TESTS.*(?:\n|$)", "", text)
                assert count, cell_id(full)
                assert text.rstrip() != full.source.rstrip()
            assert blank.source.rstrip("\n") == text.rstrip("\n"), full.id
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

    def test_who_fails_a_test_cell_loses_no_later_one(self, session):
        """What a test cell defines for later ones stands before its first check."""
        behind: set[str] = set()
        for test in (test for tests in session.tests.values() for test in tests):
            cell = ast.parse(session.cells[test].source).body
            check = next(
                (i for i, part in enumerate(cell) if isinstance(part, ast.Expr | ast.For | ast.With)), len(cell)
            )
            (before, _), (defined, used) = _names(cell[:check]), _names(cell)
            assert not (used - defined) & behind, test
            behind = (behind | defined) - before

    @pytest.mark.always
    def test_solution_gets_every_point(self, session):
        for problem in session.tests:
            assert session.failures(problem, session.cells[problem].source) == {}

    def test_blank_gets_no_point(self, session, release):
        given = cells_by_id(release.release_notebook(self.topic))
        for problem, tests in session.tests.items():
            assert session.failures(problem, given[problem].source).keys() == set(tests)

    @pytest.mark.always
    def test_right_answer_gets_every_point(self, session, right):
        assert session.failures(right.problem, right.cell) == {}

    @pytest.mark.always
    def test_wrong_answer_is_rejected_for_its_reason(self, session, wrong):
        failures = session.failures(wrong.problem, wrong.cell)
        found, expected = sorted(failures), sorted(wrong.loses)
        assert found == expected, f"{wrong.id} must lose {expected}, but loses {found}"
        first = next(failures[test] for test in session.tests[wrong.problem] if test in failures)
        assert re.search(wrong.reason, first), first

    def test_there_are_enough_answers(self, session):
        wrong = wrong_answers(self.topic)
        count = Counter(answer.problem for answer in wrong)
        assert count.keys() == session.tests.keys()
        assert min(count.values()) >= 5
        assert [answer.id for answer in wrong if re.search(answer.reason, "")] == []  # which any message matches
        assert len(wrong) >= self.least_wrong
        assert {answer.problem for answer in right_answers(self.topic)} == session.tests.keys()

    def test_make_test_fails_each_cell_and_passes_each_problem(self, session):
        """With the answers that are not left to `make test-all`."""
        lost = [answer.loses for answer in wrong_answers(self.topic) if not answer.thorough]
        assert frozenset().union(*lost) == {test for tests in session.tests.values() for test in tests}
        assert {one.problem for one in right_answers(self.topic) if not one.thorough} == session.tests.keys()

    def test_answers_are_unlike_each_other(self, session):
        answers = [*right_answers(self.topic), *wrong_answers(self.topic)]
        texts = [(answer.problem, answer.cell.strip()) for answer in answers]
        texts += [(problem, solved(session.cells[problem].source).strip()) for problem in session.tests]
        assert [text for text, count in Counter(texts).items() if count > 1] == []
        assert [name for name, count in Counter(answer.id for answer in answers).items() if count > 1] == []

    @pytest.mark.gpu
    def test_a_gpu_changes_no_grade(self, session):
        """With the real numba.cuda and cupy, the same answers win and lose the same points."""
        assert backend.name() == "gpu"
        for problem in session.tests:
            assert session.failures(problem, session.cells[problem].source) == {}
        for answer in right_answers(self.topic) + wrong_answers(self.topic):
            assert session.failures(answer.problem, answer.cell).keys() == answer.loses, answer.id
