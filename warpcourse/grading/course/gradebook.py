"""The gradebook of a course, written from results by nbgrader's own rules. Only the coordinator uses this.

Everything here can be repeated: if a merge is killed half-way, the next run repeats it and arrives at the same
gradebook. nbgrader's `SaveAutoGrades` sets scores and comments, its `AssignLatePenalties` the penalties. Manual grades
therefore stay as nbgrader keeps them, and formgrader and exports work on the result.
"""

import copy
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from alembic.script import ScriptDirectory
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Base, BaseCell, Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.preprocessors import (
    AssignLatePenalties,
    IgnorePattern,
    LimitOutput,
    NbGraderPreprocessor,
    SaveAutoGrades,
    SaveCells,
)
from nbgrader.utils import is_grade, is_locked, is_solution, is_task
from sqlalchemy import create_engine, text
from sqlalchemy.exc import SAWarning
from sqlalchemy.orm import selectinload
from tornado.log import app_log

from warpcourse.grading.course.ledger import write_synced
from warpcourse.grading.course.nbgrader_course import Assignment, Course, CourseError
from warpcourse.grading.course.submissions import TIMESTAMP, beside, timestamp_text
from warpcourse.grading.judge import inert


@dataclass
class Standing:
    """One student's entries in the gradebook for one assignment.

    `scores`: cell -> (points including manual grades and extra credit, possible). `comments`: answer cell -> comment.
    `seconds_late`: by nbgrader's rules, extensions included.
    """

    student: str
    scores: dict[str, tuple[float, float]]
    comments: dict[str, str | None]
    late_penalty: float
    seconds_late: float
    timestamp: datetime | None
    needs_manual_grade: bool = False
    possible: float = field(init=False)
    points: float = field(init=False)

    def __post_init__(self) -> None:
        self.possible = sum(possible for _, possible in self.scores.values())
        self.points = sum(points for points, _ in self.scores.values()) - self.late_penalty


class Book:
    """The gradebook, open for one assignment. Adds the assignment and its cells if necessary. Raises `CourseError`."""

    def __init__(self, course: Course, assignment: Assignment) -> None:
        self.course, self.assignment = course, assignment
        self.name = assignment.name
        create_gradebook(course)
        self.gradebook = Gradebook(course.db_url, course.directory.course_id)
        self._enter_assignment()
        # Kept because SQLAlchemy's session holds objects weakly: so they are loaded once for the whole class.
        self._cells = self._query_cells()

    def close(self) -> None:
        self.gradebook.close()

    def _query_cells(self) -> list[BaseCell]:
        notebook = self.gradebook.find_notebook(self.name, self.name)
        return self.gradebook.db.query(BaseCell).filter(BaseCell.notebook_id == notebook.id).all()

    def _enter_assignment(self) -> None:
        """Write what `nbgrader generate_assignment` writes, if it is missing or differs from the source."""
        try:
            if _cells_in(self.gradebook.find_notebook(self.name, self.name)) == _cells_of(self.assignment.master):
                return
        except MissingEntry:
            pass
        try:
            with _quietly():
                self.gradebook.update_or_create_assignment(self.name)
                master, resources = copy.deepcopy(self.assignment.master), self._resources(".")
                SaveCells(config=self.course.config).preprocess(master, resources)
        except RuntimeError as error:
            raise CourseError(
                f"{error}: the cells of {self.name}'s source have changed since the first submissions were graded; "
                f"put them back, or start the assignment anew: nbgrader db assignment remove {self.name} --force"
            ) from error
        self.gradebook.db.expire_all()

    def _resources(self, student: str) -> dict[str, Any]:
        return {
            "nbgrader": {
                "student": student,
                "assignment": self.name,
                "notebook": self.name,
                "db_url": self.course.db_url,
            }
        }

    def trimmed(self, executed: NotebookNode) -> NotebookNode:
        """Return an executed notebook as nbgrader writes it to the autograded folder."""
        notebook, resources = copy.deepcopy(executed), self._resources(".")
        for preprocessor in (IgnorePattern, ClearMetadataPreprocessor, LimitOutput):
            notebook, resources = preprocessor(config=self.course.config)(notebook, resources)
        return notebook

    def merge(self, student: str, trimmed: NotebookNode, timestamp: datetime | None, graded: bool) -> None:
        """Enter one executed notebook.

        `graded`: whether it was executed. If not, none of its cells waits for manual grading.
        """
        resources = self._resources(student)
        with _quietly(), self._whole():
            self.gradebook.update_or_create_student(student)
            when = {} if timestamp is None else {"timestamp": timestamp}
            submission = self.gradebook.update_or_create_submission(self.name, student, **when)
            (entry,) = (entry for entry in submission.notebooks if entry.name == self.name)
            resources["nbgrader"]["held"] = Held(
                {grade.name: grade for grade in entry.grades}, {comment.name: comment for comment in entry.comments}
            )
            _SaveAutoGrades(config=self.course.config)(trimmed, resources)
            if not graded:
                for grade in entry.grades:
                    if grade.auto_score is None:
                        grade.auto_score, grade.needs_manual_grade = 0, grade.manual_score is not None
            late = submission.total_seconds_late > 0
            entry.late_submission_penalty = None
            self.gradebook.db.commit()
        if late:
            self._assign_late_penalty(student)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Forget what was not committed, if there is an error in the middle of it."""
        try:
            yield
        except BaseException:
            self.gradebook.db.rollback()
            raise

    def _assign_late_penalty(self, student: str) -> None:
        with _quietly():
            assign = AssignLatePenalties(config=self.course.config)
            assign.preprocess(nbformat.v4.new_notebook(), self._resources(student))
        self.gradebook.db.expire_all()

    def update_lateness(self, timestamps: Mapping[str, datetime | None]) -> None:
        """Update timestamps and penalties of merged students, as due dates and extensions may have changed."""
        late = []
        for submission in self._submissions():
            student = submission.student_id
            if student not in timestamps:
                continue
            if timestamps[student] is not None and submission.timestamp != timestamps[student]:
                submission.timestamp = timestamps[student]
            if submission.total_seconds_late > 0 or any(n.late_submission_penalty for n in submission.notebooks):
                late.append(student)
        self.gradebook.db.commit()
        for student in late:
            self._assign_late_penalty(student)

    def _submissions(self) -> list[SubmittedAssignment]:
        assignment = self.gradebook.find_assignment(self.name)
        notebooks = selectinload(SubmittedAssignment.notebooks)
        return (
            self.gradebook.db.query(SubmittedAssignment)
            .filter(SubmittedAssignment.assignment_id == assignment.id)
            .options(
                notebooks.selectinload(SubmittedNotebook.grades), notebooks.selectinload(SubmittedNotebook.comments)
            )
            .all()
        )

    def holds(self) -> set[str]:
        """Return the students whose submission of the assignment is in the gradebook."""
        assignment = self.gradebook.find_assignment(self.name)
        rows = self.gradebook.db.query(SubmittedAssignment.student_id)
        return {student for (student,) in rows.filter(SubmittedAssignment.assignment_id == assignment.id)}

    @property
    def due(self) -> datetime | None:
        """Return the assignment's due date, UTC."""
        return self.gradebook.find_assignment(self.name).duedate

    def students(self) -> set[str]:
        """Return everyone in the gradebook."""
        return {student.id for student in self.gradebook.students}

    def standings(self) -> dict[str, Standing]:
        """Return the standing of every student with a submission of the assignment."""
        possible = {cell.id: cell.max_score for cell in self._cells if hasattr(cell, "max_score")}
        found = {}
        for submission in self._submissions():
            for entry in submission.notebooks:
                if entry.name != self.name:
                    continue
                found[submission.student_id] = Standing(
                    submission.student_id,
                    {grade.name: (grade.score, possible[grade.cell_id]) for grade in entry.grades},
                    {comment.name: comment.comment for comment in entry.comments},
                    entry.late_submission_penalty or 0.0,
                    submission.total_seconds_late,
                    submission.timestamp,
                    any(grade.needs_manual_grade for grade in entry.grades),
                )
        return found


def write_autograded(
    course: Course, assignment: Assignment, student: str, notebook: NotebookNode, files: Mapping[str, bytes]
) -> None:
    """Write the autograded folder as nbgrader does: the notebook, the student's files, the instructor's over them.

    It replaces the old folder as a whole. Files are read-only. Those of the student's that a browser might run are left
    out.
    """
    folder = course.autograded(student, assignment.name)
    new, old = (folder.with_name(f".{folder.name}.{what}") for what in ("new", "old"))
    for leftover in (new, old):
        shutil.rmtree(leftover, ignore_errors=True)
    # The formgrader's server hands every file here to the instructor's browser, as a page of its own.
    shown = {path: data for path, data in files.items() if inert.shown_inertly(path)}
    own = (*assignment.files, f"{assignment.name}.ipynb", f"{assignment.name}.html", TIMESTAMP)
    content = beside(shown, own) | assignment.files
    content[f"{assignment.name}.ipynb"] = nbformat.writes(notebook).encode()
    if timestamp := timestamp_text(course.submitted(student, assignment.name)):
        content[TIMESTAMP] = timestamp
    for path, data in content.items():
        target = new / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o664 if course.directory.groupshared else 0o444)
    if folder.exists():
        os.rename(folder, old)
    os.rename(new, folder)
    shutil.rmtree(old, ignore_errors=True)


class Held:
    """Grades and comments of one submission, in place of a gradebook, which nbgrader would search for each cell.

    Whoever holds the session commits.
    """

    db = SimpleNamespace(commit=lambda: None)

    def __init__(self, grades: Mapping[str, Any], comments: Mapping[str, Any]) -> None:
        self.grades, self.comments = grades, comments

    def find_grade(self, cell: str, notebook: str, assignment: str, student: str) -> Any:
        return self.grades[cell]

    def find_comment(self, cell: str, notebook: str, assignment: str, student: str) -> Any:
        return self.comments[cell]


class _SaveAutoGrades(SaveAutoGrades):
    """nbgrader's SaveAutoGrades, on grades already loaded."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        names = resources["nbgrader"]
        self.notebook_id, self.assignment_id, self.student_id = names["notebook"], names["assignment"], names["student"]
        self.gradebook = names["held"]
        return NbGraderPreprocessor.preprocess(self, nb, resources)


def create_gradebook(course: Course) -> None:
    """Create an empty gradebook if there is none, beside its place, so that it appears whole or not at all.

    `nbgrader.api.Gradebook` would do the same but start a process for the version of the schema (5 s).
    """
    prefix = "sqlite:///"
    if not course.db_url.startswith(prefix):
        return
    path = Path(course.db_url.removeprefix(prefix))
    if path.exists():
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    unfinished.unlink(missing_ok=True)
    engine = create_engine(f"{prefix}{unfinished}", future=True)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        head = ScriptDirectory(ALEMBIC_DIR).get_current_head()
        connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": head})
    engine.dispose()
    write_synced(path, unfinished.read_bytes())
    unfinished.unlink()


def _cells_of(master: NotebookNode) -> dict[str, tuple]:
    """Return what the gradebook should hold for each cell of the exercise."""
    found = {}
    for cell in master.cells:
        if is_grade(cell) or is_solution(cell) or is_locked(cell) or is_task(cell):
            metadata = cell.metadata.nbgrader
            points = float(metadata["points"]) if is_grade(cell) or is_task(cell) else None
            found[metadata["grade_id"]] = (
                cell.cell_type,
                is_locked(cell),
                cell.source,
                metadata.get("checksum"),
                points,
                bool(is_solution(cell)),
            )
    return found


def _cells_in(notebook: Any) -> dict[str, tuple]:
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    solutions = {cell.name for cell in notebook.solution_cells}
    return {
        cell.name: (
            cell.cell_type,
            cell.locked,
            cell.source,
            cell.checksum,
            points.get(cell.name),
            cell.name in solutions,
        )
        for cell in notebook.source_cells
    }


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence a harmless warning by SQLAlchemy, and the tracebacks that nbgrader prints of errors it also raises."""
    before, app_log.disabled = app_log.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SAWarning)  # about add_submission
            yield
    finally:
        app_log.disabled = before
