"""An nbgrader course: its folders, its settings, and its assignments with their hidden tests."""

import argparse
import glob
import hashlib
import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from nbgrader.utils import find_all_files, is_grade
from traitlets.config import Config, PyFileConfigLoader

from warpcourse.paths import COURSE

CONFIG = "nbgrader_config.py"


class CourseError(Exception):
    """The course or one of its assignments cannot be graded. The message says why and what to do."""


def add_assignment(parser: argparse.ArgumentParser) -> None:
    """Let a command line name an assignment and, with --course, the folder of its course."""
    parser.add_argument("assignment", help="its name, such as 01_vector_multiply, or its folder")
    here = Path.cwd() if Path(CONFIG).is_file() else COURSE
    told = f"the folder of {CONFIG} (default: here)"
    parser.add_argument("--course", type=Path, metavar="FOLDER", default=here, help=told)


@dataclass(frozen=True)
class Assignment:
    """The instructor's side of one assignment.

    `name`: for example "01_vector_multiply". `master`: the instructor's notebook with hidden tests, without solutions.
    `files`: files beside it in the source folder, path -> content, of which each student gets a fresh copy. `hash`: of
    both.
    """

    name: str
    master: NotebookNode
    files: dict[str, bytes]
    hash: str


class Course:
    """The course in `root`, the folder of nbgrader_config.py. Raises `CourseError`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        if not (self.root / CONFIG).is_file():
            raise CourseError(
                f"{self.root} holds no {CONFIG}; run this in the course's folder, or name that folder with --course"
            )
        self.config: Config = PyFileConfigLoader(CONFIG, path=str(self.root)).load_config()
        self.directory = CourseDirectory(config=self.config)
        if not self.config.CourseDirectory.get("root"):
            self.directory.root = str(self.root)

    @property
    def db_url(self) -> str:
        """Return the gradebook's address for SQLAlchemy."""
        return self.directory.db_url

    @cached_property
    def grading(self) -> Path:
        """Return the folder of a class's own files, which are in no repository. Creates it if necessary."""
        folder = self.root / "grading"
        folder.mkdir(exist_ok=True)
        return folder

    def source(self, assignment: str) -> Path:
        return Path(self.directory.format_path(self.directory.source_directory, ".", assignment))

    def submitted(self, student: str, assignment: str) -> Path:
        return Path(self.directory.format_path(self.directory.submitted_directory, student, assignment))

    def autograded(self, student: str, assignment: str) -> Path:
        return Path(self.directory.format_path(self.directory.autograded_directory, student, assignment))

    def feedback(self, student: str, assignment: str) -> Path:
        return Path(self.directory.format_path(self.directory.feedback_directory, student, assignment))

    def students(self, assignment: str) -> list[str]:
        """Return everyone who has handed in this assignment, sorted by id. A link or a file in the place of the folder
        counts, too, and in that of the student's folder where it leads nowhere else: `submissions.read` says so."""
        directory = self.directory
        step = {"nbgrader_step": directory.submitted_directory, "assignment_id": assignment}
        pattern = os.path.join(
            glob.escape(str(self.root)), directory.directory_structure.format(student_id="*", **step)
        )
        expression = directory.format_path(
            directory.submitted_directory, "(?P<student>[^/]+)", re.escape(assignment), escape=True
        )
        above, name = os.path.split(pattern)
        misplaced = [os.path.join(path, name) for path in glob.glob(above) if not os.path.isdir(path)]
        matches = (re.fullmatch(expression, path) for path in [*glob.glob(pattern), *misplaced])
        return sorted(match["student"] for match in matches if match)

    def must_have(self, student: str, assignment: str) -> None:
        """Raise `CourseError` if this student has handed in nothing."""
        if student not in self.students(assignment):
            folder = self.submitted(student, assignment)
            raise CourseError(f"there is no submission of {student!r}; it belongs into {folder}")

    @staticmethod
    def name_of(given: str) -> str:
        """Return an assignment's name, given the name, the folder or the notebook."""
        path = Path(os.path.abspath(given))
        return path.stem if path.suffix == ".ipynb" else path.name

    def assignments(self) -> list[str]:
        """Return the names of assignments that have a source notebook, sorted."""
        pattern = self.directory.format_path(self.directory.source_directory, ".", "*")
        folders = [Path(path) for path in glob.glob(pattern)]
        return sorted(folder.name for folder in folders if (folder / f"{folder.name}.ipynb").is_file())

    def assignment(self, name: str) -> Assignment:
        """Read an assignment from its source folder. Raises `CourseError`."""
        folder = self.source(name)
        path = folder / f"{name}.ipynb"
        if not path.is_file():
            known = ", ".join(self.assignments()) or "none"
            raise CourseError(f"no assignment {name!r}: there is no {path}; choose one of this course: {known}")
        others = [other.name for other in folder.glob("*.ipynb") if other != path]
        if others:
            raise CourseError(
                f"{folder} holds more than one notebook; keep only {path.name} and move {', '.join(others)} elsewhere"
            )
        master = self._master(path)
        files = {}
        for file in sorted(find_all_files(str(folder), [*self.directory.ignore, "*.ipynb"])):
            files[Path(file).relative_to(folder).as_posix()] = Path(file).read_bytes()
        # Not the whole notebook: nbformat draws new cell ids if the source has none.
        cells = [[cell.cell_type, cell.source, cell.metadata.get("nbgrader")] for cell in master.cells]
        digest = hashlib.sha256(json.dumps(cells, sort_keys=True).encode())
        for relative, content in files.items():
            digest.update(f"\0{relative}\0{len(content)}\0".encode() + content)
        return Assignment(name, master, files, digest.hexdigest())

    def _master(self, path: Path) -> NotebookNode:
        """Return the source notebook as nbgrader saves its cells: with hidden tests, without solutions."""
        config = Config(self.config)
        config.Exporter.default_preprocessors = []
        exporter = NotebookExporter(config=config)
        for preprocessor in GenerateAssignment(config=config).preprocessors:
            if preprocessor is SaveCells:  # the later ones remove hidden tests, for the release
                break
            exporter.register_preprocessor(preprocessor)
        text, _ = exporter.from_filename(str(path))
        master = nbformat.reads(text, as_version=4)
        if not any(is_grade(cell) for cell in master.cells):
            raise CourseError(f"{path} has no graded cell; add test cells with points")
        return master
