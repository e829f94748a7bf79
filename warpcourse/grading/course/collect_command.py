"""`python -m warplab collect ASSIGNMENT ARCHIVE ...`: from a learning platform's archive to nbgrader's folders."""

import argparse
import itertools
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from warpcourse.exercises.score import cell_id
from warpcourse.grading.course.archives import MAX_NAME, ArchiveError, Entry, inside, of_class
from warpcourse.grading.course.ledger import write_synced
from warpcourse.grading.course.nbgrader_course import Course, CourseError, add_assignment
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.platforms import NAMES, Collected, owner
from warpcourse.grading.course.submissions import MAX_NOTES, problem_with_name

MAX_BYTES = 256 * 2**20  # read of one student, unpacked
MAX_DEPTH = 3  # archives in archives
BLOCK = 4096  # bytes that a file takes at least
_NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)  # browsers add .txt and .json
_ARCHIVE = re.compile(r"\.(zip|tar|tgz|tbz2?|gz|bz2)$", re.IGNORECASE)
# What `make lab`, browsers, platforms and desktops put around a file's name.
_RENAMED = re.compile(r"(?:exercise_|copy[ _]of[ _])*(.+?)((?:[ _-]*(?:copy|\(\d+\)|-\d+))*)", re.IGNORECASE)


@dataclass
class Handed:
    """What one student handed in. `entries`: (archive, attempt), file. `notebooks`: rank, path, content."""

    prefix: str = ""
    entries: list[tuple[tuple[int, int], Entry]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    notebooks: list[tuple[tuple, str, bytes]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    left: int = field(default_factory=lambda: MAX_BYTES)


def main(argv: list[str] | None = None) -> int:
    """Collect a class. Return 0; 1 if of somebody there is nothing to grade; 2 for wrong use."""
    parser = argparse.ArgumentParser(
        prog="python -m warplab collect",
        description="Put what a class handed in where it is graded. Can be repeated; what is replaced is kept.",
        epilog="Exit status: 0; 1 if somebody handed in nothing that can be graded; 2 for wrong use.",
    )
    add_assignment(parser)
    what = "Moodle's or Canvas's archive, or a zip, tar or folder with one part per student; the last counts"
    parser.add_argument("archive", type=Path, nargs="+", help=what)
    parser.add_argument("--roster", type=Path, metavar="FILE", help="Moodle's grading worksheet or Canvas's gradebook")
    arguments = parser.parse_args(argv)
    try:
        course = Course(arguments.course)
        return _collect(course, course.name_of(arguments.assignment), arguments.archive, arguments.roster)
    except (CourseError, ArchiveError, OSError) as error:
        print(f"error: {on_terminal(str(error))}", file=sys.stderr)
        return 2


def _collect(course: Course, assignment: str, paths: list[Path], roster: Path | None) -> int:
    collector, kept = Collector(course, assignment), Collected.load(course, assignment)
    if roster:
        kept.read_roster(roster, assignment)
    handed: dict[str, Handed] = {}
    for number, path in enumerate(paths):
        print(f"{path}: {_sort(path, number, handed)}")
    collector.reports.mkdir(parents=True, exist_ok=True, mode=0o700)
    people = [(number, who, kept.names(row)) for number, who, row in kept.roster()]
    for key, one in sorted(handed.items()):
        # A platform's number means that one alone: the same digits may be another student's points or id.
        named = (who for number, who, ids in people if (key == number if one.prefix else key in map(_composed, ids)))
        student = kept.students.get(key, {}).get("student") or next(named, key)
        try:
            if problem := problem_with_name(student):
                raise ValueError(problem)
            found = collector.keep(student, one)
        except (OSError, ValueError) as error:
            found = False
            one.notes.append(f"Could not be collected: {error}")
        notes = [on_terminal(note, lines=False) for note in one.notes[:MAX_NOTES]]
        kept.students[key] = {"student": student, "prefix": one.prefix, "notes": notes, "found": found}
        print(*(f"  {on_terminal(student, lines=False)}: {note}\n" for note in notes), sep="", end="")
        if notes and not problem_with_name(student):
            write_synced(collector.reports / f"{student}.txt", "\n".join([*notes, ""]).encode(), 0o600)
    kept.save(course, assignment)
    without = [kept.students[key]["student"] for key in sorted(handed) if not kept.students[key]["found"]]
    for what, students in (("nothing to grade", without), ("nothing handed in", sorted(kept.missing() - set(without)))):
        if students:
            print(f"  {what}: {on_terminal(', '.join(students), lines=False)}")
    print(f"{assignment}: {len(handed) - len(without)} of {len(handed)} collected; reports: {collector.reports}")
    return 1 if without else 0


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


def _sort(path: Path, number: int, handed: dict[str, Handed]) -> str:
    """Add the files of an archive to those of their students. Return whose names it has, and what is nobody's."""
    entries, nobodys = of_class(path), []
    folders = [entry.parts[:-1] for entry in entries]
    same = len([*itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))])
    around = same if len(folders) > 1 and not path.is_dir() else 0  # folders around a class that was packed with them
    tops = {entry.parts[: same + 1] for entry in entries}  # names below, and how many there are, are a student's choice
    counts = {name: sum(any(map(names.fullmatch, top)) for top in tops) for name, names in NAMES.items()}
    platform = max(counts, key=counts.__getitem__)
    platform = platform if 2 * counts[platform] > len(tops) else "plain"
    for entry in entries:
        parts = entry.parts[around:]
        if platform == "plain":
            key = parts[0] if len(parts) > 1 else re.sub(r"(\.tar)?\.\w+$", "", parts[0])
            handed.setdefault(key, Handed()).entries.append(((number, 0), entry))
        elif match := owner(platform, entry.parts):
            own = entry.parts[entry.parts.index(match.string) + 1 :]  # the rest is the platform's
            entry = entry._replace(parts=(match["file"], *own) if match["file"] else own or (match.string,))
            one, told = handed.setdefault(match["id"], Handed()), match.groupdict()
            attempt = int(told.get("attachment") or 0)
            if platform == "moodle":
                one.prefix = f"{match['name']}_{match['id']}_assignsubmission_file_/"
            elif all((number, attempt) >= before for before, _ in one.entries):
                one.prefix = match.string[: match.start("file" if match["file"] else "kind")]
            if match["kind"] not in (None, "file"):
                one.notes.append(f"{match.string} was typed into the platform's own form and is not graded.")
            else:
                one.entries.append(((number, attempt), entry))
            if told.get("late") and "Canvas calls it late." not in one.notes:
                one.notes.append("Canvas calls it late.")
        else:
            nobodys.append("/".join(entry.parts))
    more = f"; of nobody, and left out: {', '.join(nobodys[:5])}{' ...' * (len(nobodys) > 5)}" if nobodys else ""
    return on_terminal(platform + more, lines=False)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")


def _of(when: tuple[int, ...]) -> str:
    """Return the day of (archive, attempt, year, month, day, ...), "" without one."""
    return f" of {when[2]}-{when[3]:02}-{when[4]:02}" if len(when) > 4 else ""


class Collector:
    """Chooses a student's notebook of one assignment and puts it where it is graded."""

    def __init__(self, course: Course, assignment: str) -> None:
        self.course, self.name = course, assignment
        self.reports = Collected.folder(course) / assignment
        cells = map(cell_id, course.assignment(assignment).master.cells)
        self.cells = [json.dumps(str(cell)).encode() for cell in cells if cell]

    def keep(self, student: str, one: Handed) -> bool:
        """Put a student's notebook where it is graded. Return whether there is one. Raises OSError, ValueError."""
        for order, entry in one.entries:
            self._read([entry], order, 0, one)
        names = _some(one.others)
        if not one.notebooks:
            one.notes.append(f"There is no notebook in what was handed in{': ' + names if names else ''}.")
            return False
        (mine, when, *_), path, content = max(one.notebooks)
        rest = [(other, then) for (_, then, *_), other, data in one.notebooks if data != content]
        one.notebooks.clear()  # of a class they would fill the memory
        if rest:
            same = path in dict(rest)  # to a reader; a zip may hold two names that differ in their Unicode form
            told = [f"{name}{_of(then) * same}" for name, then in rest]
            one.notes.append(f"Several notebooks: {path}{_of(when) * same} counts, not {_some(told)}.")
        if names:
            one.notes.append(f"Only the notebook is graded, not {names}.")
        if not mine:
            one.notes.append(f"{path} has neither the name nor a cell of {self.name}: is it the right notebook?")
        self._write(student, content, one)
        return True

    def _read(self, entries: Iterable[Entry], order: tuple[int, ...], depth: int, one: Handed) -> None:
        for entry in entries:
            path, name = "/".join(entry.parts)[-MAX_NAME:], entry.parts[-1]
            one.left -= BLOCK
            if one.left < 0:
                one.notes.append(f"{path} and what follows was left out: there is too much.")
                return
            if not entry.plain:
                one.notes.append(f"{path} is a link or a device and was left out.")
                continue
            if not (_NOTEBOOK.search(name) or _ARCHIVE.search(name)):
                one.others.append(name)
                continue
            try:
                with entry.open() as file:
                    content = file.read(one.left + 1)
                one.left -= len(content)
                if one.left < 0:
                    raise ArchiveError(f"unpacked, a student's files have more than {MAX_BYTES >> 20} MiB")
                nested = inside(name, content)
            except Exception as error:  # whatever a broken or hostile archive raises concerns its student alone
                one.left = max(one.left, 0)
                one.notes.append(f"{path} cannot be read ({str(error) or type(error).__name__}).")
                continue
            when = (*order, *entry.when)
            if nested is not None and depth < MAX_DEPTH:
                self._read(nested, when, depth + 1, one)
            elif nested is None and _NOTEBOOK.search(name):
                one.notebooks.append((self._rank(name, when, content), path, content))
            else:
                one.notes.append(
                    f"{path} is no archive that can be opened: a zip or tar, in at most {MAX_DEPTH} others."
                )

    def _rank(self, name: str, when: tuple[int, ...], content: bytes) -> tuple:
        """Order by: is it of this exercise, then what is newer, then the number that a browser or platform added."""
        renamed = _RENAMED.fullmatch(_NOTEBOOK.sub("", name))
        title, added = renamed.groups() if renamed else (name, "")
        titled, own = title.lower() == self.name.lower(), any(cell in content for cell in self.cells)
        return titled or own, when, titled, own, [int(number) for number in re.findall(r"\d+", added)]

    def _write(self, student: str, content: bytes, one: Handed) -> None:
        folder = self.course.submitted(student, self.name)
        path = folder / f"{self.name}.ipynb"
        if folder.parent.is_symlink():
            raise ValueError(f"{folder.parent} is a link.")
        if not folder.is_symlink() and path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            return
        if os.path.lexists(folder):
            earlier = self.reports / "replaced" / student
            earlier.mkdir(parents=True, exist_ok=True)
            os.rename(folder, earlier / str(sum(1 for _ in earlier.iterdir()) + 1))
            one.notes.append("It replaces what was handed in before.")
        folder.mkdir(parents=True)
        write_synced(path, content)
