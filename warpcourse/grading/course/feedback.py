"""Feedback pages of a class: which are missing or out of date, made by several processes under limits."""

import contextlib
import hashlib
import json
import shutil
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbgrader.utils import find_all_files

from warpcourse.grading.course import feedback_page, machine
from warpcourse.grading.course.gradebook import Standing
from warpcourse.grading.course.ledger import Ledger, write_synced
from warpcourse.grading.course.nbgrader_course import Assignment, Course
from warpcourse.grading.sandbox.limited import Limited, TooCostly

SECONDS = 60.0  # of processor time for one page; those of the exercises need less than one
MEMORY = 2 << 30  # bytes


@dataclass(frozen=True)
class Page:
    """One page to make: the autograded notebook, the target, and the gradebook's data."""

    student: str
    assignment: str
    notebook: Path
    target: Path
    standing: Standing

    def shown(self) -> dict[str, Any]:
        """Return what the page shows of the standing."""
        names = ("scores", "comments", "late_penalty", "points", "possible")
        return {name: getattr(self.standing, name) for name in names}

    def inputs(self) -> str:
        """Return a hash of everything that the page shows."""
        digest = hashlib.sha256(json.dumps([feedback_page.POLICY, self.shown()], sort_keys=True).encode())
        digest.update(self.notebook.read_bytes())
        return digest.hexdigest()


def write_pages(
    course: Course, assignment: Assignment, ledger: Ledger, standings: Iterable[Standing], processes: int
) -> Iterator[tuple[str, str]]:
    """Make the pages that are missing or out of date.

    Yield the student of each one, and why it could not be made, "" if it was.
    """
    pages = {}
    for standing in standings:
        student = standing.student
        page = Page(
            student,
            assignment.name,
            course.autograded(student, assignment.name) / f"{assignment.name}.ipynb",
            course.feedback(student, assignment.name) / f"{assignment.name}.html",
            standing,
        )
        if page.notebook.exists():
            inputs = page.inputs()
            if not page.target.exists() or ledger.feedback(assignment.name, student) != inputs:
                pages[student] = page, inputs
    if not pages:
        return
    with contextlib.ExitStack() as stack:
        renderer = _Renderer(course.root, stack)
        pool = stack.enter_context(ThreadPoolExecutor(min(processes, len(pages))))
        todo = [page for page, _ in pages.values()]
        for page, made in zip(todo, [pool.submit(renderer, page) for page in todo], strict=True):
            try:
                _write(course, page, made.result())
            except (RuntimeError, OSError) as error:
                if machine.at_fault(error):
                    raise
                yield page.student, f"{type(error).__name__}: {error}"
                continue
            inputs = pages[page.student][1]
            record = {"kind": "feedback", "assignment": assignment.name, "student": page.student, "inputs": inputs}
            ledger.append(record)
            yield page.student, ""


class _Renderer:
    """What makes pages in several threads, each with a process of its own."""

    def __init__(self, root: Path, stack: contextlib.ExitStack) -> None:
        self._root, self._stack, self._own = str(root), stack, threading.local()

    def __call__(self, page: Page) -> str:
        if not hasattr(self._own, "limited"):
            self._own.limited = self._stack.enter_context(Limited(feedback_page.__name__, SECONDS, MEMORY))
        standing = page.standing
        for function in ("render", "render_plainly"):
            with contextlib.suppress(TooCostly):
                return self._own.limited(
                    function, self._root, page.student, page.assignment, str(page.notebook), page.shown()
                )
        return feedback_page.without_notebook(page.assignment, standing.points, standing.possible)


def _write(course: Course, page: Page, html: str) -> None:
    """Write the page and, beside it, the student's files, as nbgrader does."""
    page.target.parent.mkdir(parents=True, exist_ok=True)
    for name in find_all_files(str(page.notebook.parent), [*course.directory.ignore, "*.ipynb"]):
        target = page.target.parent / Path(name).relative_to(page.notebook.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(name, target)
        target.chmod(0o664 if course.directory.groupshared else 0o644)
    write_synced(page.target, html.encode())
    page.target.chmod(0o664 if course.directory.groupshared else 0o644)
