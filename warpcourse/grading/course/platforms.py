"""Moodle's and Canvas's own names: of the files in their archives, and of what they import.

Sources: Moodle's mod/assign (feedback/file/importziplib.php: Name_ID_assignsubmission_file, with "_" at the end before
4.1; feedback/offline/importgradeslib.php: which columns are read). Canvas's lib/content_zipper.rb
(name_LATE_USER_ATTACHMENT_file; a later attempt has a higher attachment), lib/gradebook_importer.rb, and
Assignment#generate_comments_from_files, which takes files back under the names that it gave.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from warpcourse.grading.course.gradebook import Standing
from warpcourse.grading.course.ledger import write_synced
from warpcourse.grading.course.nbgrader_course import Course, CourseError
from warpcourse.grading.course.plain_text import in_table

NAMES = {
    "moodle": re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)_?(?P<file>.*)"),
    "canvas": re.compile(
        r"(?P<name>.+?)_(?P<late>LATE_)?(?P<id>\d+|(?<=anon_)\w+?)_"
        r"(?:(?P<attachment>\d+)_(?P<file>.+)|(?P<kind>text|link)\.html)"
    ),
}
# A folder of Moodle's ends with the student's number, whatever the name before it says. A file that has two, of which
# the student may have written either, is nobody's.
MOODLE_FOLDER = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)_?(?P<file>)")
_MARK = re.compile(r"_\d+_assignsubmission_")
# Of a roster: what must be there (first: the platform's number), a student's id in nbgrader, where to upload.
_COLUMNS = {"moodle": ("Identifier", "Grade", "Last modified (grade)"), "canvas": ("ID", "Student", "Section")}
_STUDENT = {"moodle": ("ID number", "Email address"), "canvas": ("SIS Login ID", "SIS User ID")}
# What a student may have chosen, and no import reads beside the platform's number.
_NAMES_IN_TABLE = ("Full name", "First name", "Last name", "Student")
_UPLOAD = {
    "moodle": ("Upload grading worksheet", "Upload multiple feedback files in a zip"),
    "canvas": ("Grades: Import", "Upload Submissions"),
}


def owner(platform: str, parts: tuple[str, ...]) -> re.Match[str] | None:
    """Return the match of the first part of a path that says whose it is."""
    for at, part in enumerate(parts, 1):
        names = MOODLE_FOLDER if platform == "moodle" and at < len(parts) else NAMES[platform]
        if match := names.fullmatch(part):
            return match if names is MOODLE_FOLDER or len(_MARK.findall(part)) < 2 or platform != "moodle" else None
    return None


@dataclass
class Collected:
    """What `collect` keeps of an assignment for the way back.

    `platform`: whose roster it is, "" without one. `columns`, `rows`: of the roster. `students`: platform's number, or
    name of a folder -> student (id), prefix (of the platform's name for files), notes, found (anything to grade).
    """

    platform: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    students: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, course: Course, assignment: str, platform: str = "") -> Collected:
        """Return what was kept, or an empty one. Raises `CourseError` if it does not lead back to `platform`."""
        path = cls.folder(course) / f"{assignment}.json"
        kept = cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()
        if platform and kept.platform != platform:
            raise CourseError(f"--csv {platform} needs `collect {assignment} ARCHIVE --roster FILE`, with its own CSV")
        return kept

    @staticmethod
    def folder(course: Course) -> Path:
        return course.grading / "collected"

    def save(self, course: Course, assignment: str) -> None:
        text = json.dumps(asdict(self), ensure_ascii=False, indent=1)
        write_synced(self.folder(course) / f"{assignment}.json", text.encode(), 0o600)

    def read_roster(self, path: Path, assignment: str) -> None:
        """Take in Moodle's grading worksheet or Canvas's exported gradebook. Raises `CourseError` if it is neither."""
        text = path.read_bytes().decode("utf-8-sig", "replace")
        delimiter = max(",;\t", key=text.partition("\n")[0].count)
        self.columns, *rows = [*csv.reader(io.StringIO(text), delimiter=delimiter)] or [[]]
        self.rows = [row + [""] * (len(self.columns) - len(row)) for row in rows if any(row)]
        self.platform = next((name for name, needed in _COLUMNS.items() if {*needed} <= {*self.columns}), "")
        if not self.platform:
            wanted = " or ".join(f"{', '.join(needed)} ({name})" for name, needed in _COLUMNS.items())
            raise CourseError(f"{path} lacks the columns {wanted}; export it with the platform in English")
        self.grade_column(assignment)

    def cell(self, row: list[str], column: str) -> str:
        return row[self.columns.index(column)].strip() if column in self.columns else ""

    def roster(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yield each student's number on the platform, id in nbgrader, and row of the file."""
        for row in self.rows:
            if number := re.search(r"\d+$", self.cell(row, _COLUMNS[self.platform][0])):
                ids = [self.cell(row, column).lstrip(".") for column in _STUDENT[self.platform]]  # ".." names no folder
                kept = self.students.get(number[0], {}).get("student")
                yield number[0], next(filter(None, [kept, *ids]), number[0]), row

    def names(self, row: list[str]) -> list[str]:
        """Return what a folder of this student may be called."""
        return [self.cell(row, column) for column in (*_STUDENT[self.platform], "Full name", "Student")]

    def empty(self) -> set[str]:
        """Return the students who handed in nothing that can be graded."""
        return {one["student"] for one in self.students.values() if not one["found"]}

    def missing(self) -> set[str]:
        """Return the students of the roster of whom there is nothing to grade."""
        found = {one["student"] for one in self.students.values() if one["found"]}
        return {student for _, student, _ in self.roster()} - found

    def grade_column(self, assignment: str) -> int:
        """Return where points go. Raises `CourseError` if it is not clear which column of a gradebook is meant."""
        if self.platform == "moodle":
            return self.columns.index("Grade")
        titles = {n: title[1] for n, name in enumerate(self.columns) if (title := re.fullmatch(r"(.+) \(\d+\)", name))}
        plain = {n: re.sub(r"[\W_]", "", title).lower() for n, title in titles.items()}
        own = re.sub(r"[\W_]", "", assignment).lower()
        meant = [n for n, title in plain.items() if title and (title in own or own in title)] or list(plain)
        if len(meant) != 1:
            told = ", ".join(self.columns[n] for n in meant) or "none is called NAME (ID)"
            raise CourseError(f"which column of the gradebook is {assignment}'s? Leave one of these in it: {told}")
        return meant[0]

    def maximum(self, row: list[str], column: int) -> float | None:
        """Return what full points are on the platform, None if the roster does not say."""
        of_all = next((row[column] for row in self.rows if "Points Possible" in row[0]), "")
        told = self.cell(row, "Maximum Grade") or of_all
        return float(told.replace(",", ".")) if re.fullmatch(r"\s*\d+([.,]\d+)?\s*", told) else None

    def write_back(
        self, course: Course, assignment: str, records: Mapping[str, Any], standings: Mapping[str, Standing]
    ) -> str:
        """Write grades and pages as the platform imports them. Return what to do with them."""
        grades, pages = (self.folder(course) / f"{assignment}-{self.platform}{end}" for end in (".csv", ".zip"))
        column, scales, shown = self.grade_column(assignment), set(), [*range(len(self.columns))]
        notes = {one["student"]: one["notes"] for one in self.students.values()}
        for _, student, row in self.roster():
            for n, name in enumerate(self.columns):
                row[n] = in_table(row[n]) if name in _NAMES_IN_TABLE else row[n]
            if standing := standings.get(student):
                full = self.maximum(row, column) or standing.possible
                scales.add((standing.possible, full))
                row[column] = f"{standing.points * full / standing.possible:.2f}"
            if "Feedback comments" in self.columns:
                told = [*notes.get(student, []), records.get(student, {}).get("reason", "")]
                comment = self.columns.index("Feedback comments")
                row[comment] = in_table(" ".join(filter(None, told))) or row[comment]
        if self.platform == "canvas":  # other assignments' points may have changed there since
            shown = [*range(self.columns.index("Section") + 1), column]
        text = io.StringIO()
        csv.writer(text).writerows([row[n] for n in shown] for row in [self.columns, *self.rows])
        write_synced(grades, text.getvalue().encode())
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in self.students.values():
                page = course.feedback(one["student"], assignment) / f"{assignment}.html"
                if one["found"] and page.is_file():
                    archive.writestr(f"{one['prefix']}{page.name}", page.read_bytes())
                if one["notes"]:
                    archive.writestr(f"{one['prefix']}collected.txt", "\n".join([*one["notes"], ""]))
        write_synced(pages, content.getvalue())
        told = [f"{path} ({where})" for path, where in zip((grades, pages), _UPLOAD[self.platform], strict=True)]
        scaled = [f"{old:g} points are written as {new:g}" for old, new in sorted(scales) if old != new]
        return "\n".join([f"for {self.platform}:", *told, *scaled])
