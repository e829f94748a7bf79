"""The notebooks of the course in the order in which they are worked through: each lesson, then its exercise."""

import json
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from warpcourse.bench.lab import left_out
from warpcourse.paths import COURSE

EXERCISE = "exercise_"  # how a learner's exercise begins, so that its tab has another name than the lesson's


@dataclass(frozen=True)
class Shipped:
    """One notebook of the course: `path` where it is shipped, `own` its path in the learner's folder, `title` its
    heading, with the lab's number.

    Both paths are relative, to the course's folder and to the learner's.
    """

    path: PurePosixPath
    own: PurePosixPath
    title: str

    @property
    def number(self) -> str:
        """Return the lab's number, such as "01"."""
        return self.path.stem[:2]

    @property
    def is_exercise(self) -> bool:
        return self.path.parts[0] == "exercises"


def shipped(course: Path = COURSE) -> list[Shipped]:
    """Return the lessons and exercises that are there and can be worked in, in order."""
    paths = [*course.glob("notebooks/[0-9][0-9]_*.ipynb"), *course.glob("exercises/[0-9][0-9]_*/[0-9][0-9]_*.ipynb")]
    without = {lab.slug for lab in left_out()}
    found = [_shipped(path, course) for path in paths if path.stem not in without]
    exercises = Counter(one.number for one in found if one.is_exercise)

    def place(one: Shipped) -> tuple:
        """Put an exercise behind its own lesson where the lab has several, else behind all lessons."""
        return one.number, one.path.stem if exercises[one.number] > 1 else "", one.is_exercise, one.path

    return sorted(found, key=place)


def _shipped(path: Path, course: Path) -> Shipped:
    place = PurePosixPath(path.relative_to(course).as_posix())
    own = place.with_name(EXERCISE + place.name) if place.parts[0] == "exercises" else place
    title = _title(path)
    return Shipped(place, own, title if place.name[:2] in title else f"{place.name[:2]} {title}")


def _title(path: Path) -> str:
    """Return the first heading; the file's name where there is none."""
    # As plain JSON: nbformat validates all cells, which takes most of a second for the course's notebooks.
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        heading = re.search(r"^# (.+)$", text, re.MULTILINE) if cell["cell_type"] == "markdown" else None
        if heading:
            return heading[1].strip()
    return path.stem


def link(source: PurePosixPath, target: PurePosixPath) -> str:
    """Return the relative link from one file to another, both relative to the same folder."""
    return PurePosixPath(os.path.relpath(target, source.parent)).as_posix()
