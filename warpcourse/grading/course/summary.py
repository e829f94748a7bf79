"""The summary of a graded class for instructors: points, failures, statuses, lateness; as text and as CSV."""

import csv
import math
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean, median
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade

from warpcourse.exercises.score import cell_id
from warpcourse.grading.course.gradebook import Standing
from warpcourse.grading.course.plain_text import in_table, on_terminal
from warpcourse.grading.judge.jobs import STATUSES
from warpcourse.grading.judge.verdicts import SENTENCES

COMMONEST = 10  # kinds of failure shown
MOST_NAMES = 20  # of students per line
HANDED_IN = "%Y-%m-%d %H:%M:%S"  # UTC


@dataclass(frozen=True)
class Problem:
    """One heading of the notebook and the graded cells below it."""

    title: str
    cells: tuple[str, ...]


def problems(master: NotebookNode) -> list[Problem]:
    """Return the problems in order. Cells before the first heading "## …" are named after the first of them."""
    found: list[tuple[str, list[str]]] = []
    title = ""
    for cell in master.cells:
        if cell.cell_type == "markdown":
            heading = next((line for line in cell.source.splitlines() if line.startswith("## ")), None)
            title = heading.removeprefix("## ").strip() if heading else title
        if is_grade(cell):
            if not found or found[-1][0] != title:
                found.append((title, []))
            found[-1][1].append(str(cell_id(cell)))
    return [Problem(title or cells[0], tuple(cells)) for title, cells in found]


def text(
    name: str,
    master: NotebookNode,
    records: Mapping[str, Mapping[str, Any]],
    standings: Mapping[str, Standing],
    missing: Collection[str],
    due: datetime | None = None,
    empty: Collection[str] = (),
) -> str:
    """Return the summary to print. `due`: UTC.

    `records`: student -> current result in the ledger. `missing`, `empty`: who handed in nothing, and nothing to grade.
    """
    graded = [standings[student] for student in records if student in standings]
    lines = [f"{name}: {_count(len(records), 'submission')}"]
    statuses = Counter(record["status"] for record in records.values())
    lines.append("  " + ", ".join(f"{statuses[status]} {status}" for status in STATUSES if statuses[status]))
    if graded:
        points = [standing.points for standing in graded]
        possible = graded[0].possible
        lines.append(f"  points: mean {mean(points):.1f}, median {median(points):g}, of {possible:g}")
        lines += ["", *_by_problem(master, graded)]
        lines += _extremes(master, graded)
        lines += _failures(master, records)
    lines += _people(records, standings, missing, empty, due)
    return "\n".join(on_terminal(line, lines=False) for line in lines)


def of_students(
    records: Mapping[str, Mapping[str, Any]], standings: Mapping[str, Standing], due: datetime | None
) -> str:
    """Return what to print of some students of a class, of whom no mean is the class's."""
    graded = [standings[student] for student in records if student in standings]
    lines = [f"  {one.student}: {one.points:g} of {one.possible:g}" for one in graded]
    return "\n".join(on_terminal(line, lines=False) for line in lines + _people(records, standings, (), (), due))


def _by_problem(master: NotebookNode, graded: list[Standing]) -> list[str]:
    found = problems(master)
    width = max(len(problem.title) for problem in found)
    lines = [f"  {'problem':<{width}}   mean   of  all points  none"]
    for problem in found:
        points = [sum(standing.scores[cell][0] for cell in problem.cells) for standing in graded]
        possible = sum(graded[0].scores[cell][1] for cell in problem.cells)
        full = sum(value >= possible for value in points)
        none = sum(value <= 0 for value in points)
        lines.append(
            f"  {problem.title:<{width}}  {mean(points):5.2f}  {possible:3g}  {full / len(points):9.0%}  "
            f"{none / len(points):4.0%}"
        )
    return lines


def _extremes(master: NotebookNode, graded: list[Standing]) -> list[str]:
    """Return the cells that everybody or nobody solved."""
    nobody, everybody = [], []
    for problem in problems(master):
        for cell in problem.cells:
            full = sum(standing.scores[cell][0] >= standing.scores[cell][1] for standing in graded)
            if full == 0:
                nobody.append(cell)
            elif full == len(graded):
                everybody.append(cell)
    lines = []
    if len(graded) > 1:
        lines += [f"  solved by nobody: {', '.join(nobody)}"] if nobody else []
        lines += [f"  solved by everybody: {', '.join(everybody)}"] if everybody else []
    return ["", *lines] if lines else []


def _failures(master: NotebookNode, records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return each problem's kinds of failure, the most common first, each with its most common message.

    Whatever ended a notebook, or kept it from running, fails all later tests but counts as one failure.
    """
    titles = {cell: problem.title for problem in problems(master) for cell in problem.cells}
    students: dict[tuple[str, str], set[str]] = {}
    messages: dict[tuple[str, str], Counter[str]] = {}
    for student, record in records.items():
        kinds = record.get("kinds", {})
        for cell in [cell for cell in titles if cell in record["failures"]]:
            kind, message = kinds.get(cell, ""), record["failures"][cell]
            group = titles[cell], SENTENCES.get(kind, message)
            if record["status"] != "graded" and kind in ("", "process"):
                group, message = ("the whole notebook", record["status"]), record["reason"]
            students.setdefault(group, set()).add(student)
            messages.setdefault(group, Counter())[message] += 1
    groups = sorted(students, key=lambda group: -len(students[group]))
    lines = []
    for group in groups[:COMMONEST]:
        title, what = group
        example = messages[group].most_common(1)[0][0]
        text = f"{title}: {what}" + (f" ({example})" if example != what else "")
        lines.append(f"  {len(students[group]):>4} in {textwrap.shorten(text, 130, placeholder=' …')}")
    if groups[COMMONEST:]:
        most = len(students[groups[COMMONEST]])
        lines.append(f"        and {len(groups) - COMMONEST} more, each of at most {_count(most, 'student')}")
    return ["", "  most common failures, by number of students", *lines] if lines else []


def _people(
    records: Mapping[str, Mapping[str, Any]],
    standings: Mapping[str, Standing],
    missing: Collection[str],
    empty: Collection[str],
    due: datetime | None,
) -> list[str]:
    lines = []
    for student, record in records.items():
        if record["status"] != "graded" or record["notes"]:
            what = " ".join(filter(None, [record["reason"], *record["notes"]]))
            lines.append(f"  {student}: {record['status']}. {textwrap.shorten(what, 300)}")
        for cell, trace in record.get("traces", {}).items():
            where = f"the simulator failed in {cell}: {trace.strip().splitlines()[-1]}"
            lines.append(
                f"  {student}: {textwrap.shorten(where, 300)} (the trace is in grading/ledger; please report it)"
            )
    late = [standings[student] for student in records if student in standings and standings[student].seconds_late > 0]
    for standing in late:
        penalty = f", penalty {standing.late_penalty:g}" if standing.late_penalty else ""
        lines.append(f"  {standing.student}: late by {_duration(standing.seconds_late)}{penalty}")
    undated = [student for student in records if student in standings and standings[student].timestamp is None]
    if due is not None and undated:
        whose = "all" if len(undated) == len(records) else _names(undated)
        lines.append(
            f"  due {due.strftime(HANDED_IN)} UTC; never late, for lack of a timestamp.txt from nbgrader: {whose} "
            "(docs/instructors.md tells how to add one)"
        )
    for names in _alike(records):
        lines.append(f"  {names}: names that differ only in their Unicode form; did one person hand in twice?")
    waiting = [student for student in records if student in standings and standings[student].needs_manual_grade]
    if waiting:
        lines.append(f"  to be graded by hand (nbgrader formgrader): {_names(waiting)}")
    for what, students in (("nothing to grade", empty), ("nothing handed in", missing)):
        lines += [f"  {what}: {_names(sorted(students))}"] if students else []
    return ["", *lines] if lines else []


def _alike(students: Iterable[str]) -> list[str]:
    """Return the groups of students whose names look the same, with what differs as escape sequences."""
    alike: dict[str, list[str]] = {}
    for student in students:
        alike.setdefault(unicodedata.normalize("NFC", student), []).append(student)
    return [" and ".join(map(ascii, group)) for group in alike.values() if len(group) > 1]


def write_csv(
    path: Path, master: NotebookNode, records: Mapping[str, Mapping[str, Any]], standings: Mapping[str, Standing]
) -> None:
    """Write one line per student.

    Columns: status, points including manual grades and penalty, lateness in seconds, whether manual grading is needed
    (yes, no), what the student's code ran under ("bubblewrap", "limits", or "" if it did not run), points of each cell.
    A field is empty if unknown, such as the points of a submission that the grader could not grade.
    """
    cells = [cell for problem in problems(master) for cell in problem.cells]
    head = ["student", "status", "points", "possible", "late_penalty", "seconds_late", "handed_in"]
    head += ["needs_hand_grading", "sandbox", "reason", *cells]
    with open(path, "w", newline="", encoding="utf-8") as file:
        # In a semicolon locale, text in quotation marks stays in one piece.
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(head)
        for student, record in sorted(records.items()):
            standing = standings.get(student)
            row: list[Any] = [in_table(student), record["status"]]
            if standing is None:
                row += [""] * 6
            else:
                handed_in = standing.timestamp.strftime(HANDED_IN) if standing.timestamp else ""
                numbers = (standing.points, standing.possible, standing.late_penalty)
                row += [*(f"{number:g}" for number in numbers), math.ceil(standing.seconds_late), handed_in]
                row.append("yes" if standing.needs_manual_grade else "no")
            row += [record["sandbox"], in_table(record["reason"])]
            row += [f"{standing.scores[cell][0]:g}" if standing else "" for cell in cells]
            writer.writerow(row)


def _names(students: list[str]) -> str:
    more = len(students) - MOST_NAMES
    return ", ".join(students[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    whole = math.ceil(seconds)  # by how little anybody is late, it is not by nothing
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
