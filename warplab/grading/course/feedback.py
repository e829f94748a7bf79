"""Feedback pages: nbgrader's own, without the hidden tests, made by several processes.

`HideHiddenTests` is also in nbgrader_config.py, so that `nbgrader generate_feedback` hides them as well.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from nbgrader.utils import find_all_files, is_grade, is_solution
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from warplab.grading.course.gradebook import Held, Standing
from warplab.grading.course.ledger import Ledger, write_synced
from warplab.grading.course.nbgrader_course import Assignment, Course
from warplab.grading.judge.hidden_tests import marked_lines, without_hidden_tests

SHORTEST = 8  # characters; a shorter hidden line, such as "):", tells nothing and may be in any traceback


class HideHiddenTests(NbGraderPreprocessor):
    """Removes hidden tests from test cells, and their lines from the outputs of these cells."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            secret = {line.strip() for line, hidden in marked_lines(cell.source) if hidden}
            cell.source = without_hidden_tests(cell.source)
            shown = {line.strip() for line in cell.source.split("\n")}
            secret = {line for line in secret - shown if len(line) >= SHORTEST}
            if secret:
                for output in cell.outputs:
                    _scrub(output, secret)
        return cell, resources


def _scrub(value: Any, secret: set[str]) -> Any:
    """Return `value` without the lines that contain a secret one, in nested lists and dicts too."""
    if isinstance(value, str):
        return "\n".join(line for line in value.split("\n") if not any(text in line for text in secret))
    if isinstance(value, dict):
        for name, inner in value.items():
            value[name] = _scrub(inner, secret)
    elif isinstance(value, list):
        return [_scrub(inner, secret) for inner in value]
    return value


@dataclass(frozen=True)
class Page:
    """One page to make: the autograded notebook, the target, and the gradebook's data."""

    student: str
    assignment: str
    notebook: Path
    target: Path
    standing: Standing

    def inputs(self) -> str:
        """Return a hash of everything that the page shows."""
        grades = [self.standing.scores, self.standing.comments, self.standing.late_penalty]
        digest = hashlib.sha256(json.dumps(grades, sort_keys=True).encode())
        digest.update(self.notebook.read_bytes())
        return digest.hexdigest()


def write_pages(
    course: Course, assignment: Assignment, ledger: Ledger, standings: Iterable[Standing], processes: int
) -> Iterator[str]:
    """Make the pages that are missing or out of date, and yield the student of each one that was made."""
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
    # Fresh interpreters, because this one has threads, connections and the gradebook open.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(pages)), context, _prepare, (course.root,)) as pool:
        todo = [page for page, _ in pages.values()]
        for page, html in zip(todo, pool.map(_render, todo), strict=True):
            _write(course, page, html)
            inputs = pages[page.student][1]
            record = {"kind": "feedback", "assignment": assignment.name, "student": page.student, "inputs": inputs}
            ledger.append(record)
            yield page.student


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


class _GivenGrades(GetGrades):
    """nbgrader's GetGrades, with grades that came with the page instead of a gradebook."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names, standing = resources["nbgrader"], resources["nbgrader"]["standing"]
        self.notebook_id, self.assignment_id, self.student_id = names["notebook"], names["assignment"], names["student"]
        grades = {
            cell: SimpleNamespace(score=score, max_score=possible)
            for cell, (score, possible) in standing.scores.items()
        }
        comments = {cell: SimpleNamespace(comment=comment) for cell, comment in standing.comments.items()}
        self.gradebook = Held(grades, comments)
        nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
        names["score"], names["max_score"] = standing.points, standing.possible
        names["late_penalty"] = standing.late_penalty
        return nb, resources


class _Pages(HTMLExporter):
    """nbconvert's HTMLExporter without its second parsing of pages that have no images.

    nbconvert parses each page again to find images without a description.
    """

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **options: Any) -> tuple[Any, dict[str, Any]]:
        if _may_have_images(nb):
            return super().from_notebook_node(nb, resources, **options)
        lexer = nb.metadata.get("language_info", {}).get("name")
        self.register_filter("highlight_code", Highlight2HTML(pygments_lexer=lexer, parent=self))
        resources = self._init_resources(resources)
        filter_ = WidgetsDataTypeFilter(notebook_metadata=self._nb_metadata, parent=self, resources=resources)
        self.register_filter("filter_data_type", filter_)
        return TemplateExporter.from_notebook_node(self, nb, resources, **options)


def _may_have_images(notebook: NotebookNode) -> bool:
    def searched() -> Iterator[str]:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                yield cell.source
            for output in cell.get("outputs", []):
                yield from output.get("data", {})
                yield str(output.get("data", {}).get("text/html", ""))

    return any("<img" in text or "![" in text or text.startswith("image/") for text in searched())


_exporter: _Pages  # one per rendering process, which compiles its template once


def _prepare(root: Path) -> None:
    global _exporter
    converter = GenerateFeedback(config=Course(root).config)
    given = [import_item(item) if isinstance(item, str) else item for item in converter.preprocessors]
    preprocessors = [_GivenGrades if item is GetGrades else item for item in given]
    if HideHiddenTests not in preprocessors:
        preprocessors.append(HideHiddenTests)
    config = Config(converter.config)
    config.Exporter.default_preprocessors = []
    _exporter = _Pages(config=config)
    for preprocessor in preprocessors:
        _exporter.register_preprocessor(preprocessor, enabled=True)


def _render(page: Page) -> str:
    notebook = nbformat.read(page.notebook, as_version=4)
    names = {"student": page.student, "assignment": page.assignment, "notebook": page.assignment}
    try:
        return _html(notebook, names, page.standing)
    except Exception:  # an output that nbconvert cannot show must not cost the others their pages
        for cell in notebook.cells:
            if cell.cell_type == "code" and not is_grade(cell):
                text = "[outputs that cannot be shown are left out]\n" if cell.outputs else ""
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
        return _html(notebook, names, page.standing)


def _html(notebook: NotebookNode, names: dict[str, str], standing: Standing) -> str:
    resources = {"unique_key": names["assignment"], "nbgrader": {**names, "standing": standing}}
    html, _ = _exporter.from_notebook_node(notebook, resources=resources)
    return html
