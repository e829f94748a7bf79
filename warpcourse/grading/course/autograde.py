"""Preprocessors for `nbgrader autograde`, the command and the formgrader's button, that use the sandbox."""

import contextlib
import functools
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.preprocessors import NbGraderPreprocessor, OverwriteCells

from warpcourse.exercises.recognise import restore
from warpcourse.exercises.score import cell_id
from warpcourse.grading.course.nbgrader_course import Course, CourseError
from warpcourse.grading.course.submissions import read
from warpcourse.grading.judge import inert
from warpcourse.grading.judge.execute import TrustedExecute
from warpcourse.grading.judge.framework_cells import framework_of
from warpcourse.grading.judge.hidden_tests import without_hidden_tests
from warpcourse.grading.judge.untrusted import Reading, Unusable
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager, Zygotes


class SandboxedExecute(TrustedExecute):
    """Replaces nbgrader's Execute in `Autograde.autograde_preprocessors`.

    Without bubblewrap the student's cells run under limits only, and nbgrader's log has a warning.
    """

    def preprocess(self, nb: NotebookNode, resources: Any = None, km: Any = None) -> tuple[NotebookNode, Any]:
        # nbgrader has written the hidden tests into the notebook in this folder.
        folder = Path(resources["metadata"]["path"])
        files = read("", folder).files
        files = {path: content for path, content in files.items() if not path.endswith(".ipynb")}
        for path in files:
            if not inert.shown_inertly(path):  # the formgrader would hand it to the browser as a page of its own
                self.log.warning("Leaving %r out of the graded copy; it is in the submitted folder", path)
                (folder / path).unlink(missing_ok=True)
        nb.metadata = {name: value for name, value in nb.metadata.items() if name == "kernelspec"}
        zygotes = _zygotes()
        if zygotes.sandbox.kind != "bubblewrap":
            self.log.warning(zygotes.sandbox.describe())
        warmth = ""
        framework = framework_of(*self._trusted(resources)[1:])
        if framework is not None:
            self.limits, warmth = self.limits.for_framework(framework), framework.warmth
        with SandboxedKernelManager(zygotes, files, self.limits, warmth) as manager:
            return super().preprocess(nb, resources, manager)


class RestoreNames(NbGraderPreprocessor):
    """Gives cells the names that they had lost, as `python -m warplab grade` does. nbgrader's log tells which."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        with contextlib.suppress(CourseError):  # nbgrader says what is wrong with it
            course = Course(Path(self.config.CourseDirectory.root))
            master = course.assignment(resources["nbgrader"]["assignment"]).master
            try:
                found = Reading().names(nb, master)
            except Unusable as error:
                self.log.warning(str(error))
                return nb, resources
            restore(nb, master, found)
            for note in found.notes():
                self.log.warning(note)
        return nb, resources


class OverwriteTests(OverwriteCells):
    """nbgrader's OverwriteCells, with warnings only for tests that were edited, not for hidden parts put back."""

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        if cell_id(cell):
            with contextlib.suppress(MissingEntry):  # nbgrader reports it
                given = self.gradebook.find_source_cell(cell_id(cell), self.notebook_id, self.assignment_id)
                if given.locked and cell.source.rstrip() == without_hidden_tests(given.source).rstrip():
                    cell.source = given.source
        return super().preprocess_cell(cell, resources, cell_index)


@functools.cache
def _zygotes() -> Zygotes:
    """Keep one supply for this process; its zygotes end with it."""
    return Zygotes()
