"""`python -m warplab similar TOPIC`: list pairs of submissions with similar kernels, for a person to look at."""

import argparse
import csv
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import nbformat

from warpcourse.exercises import release
from warpcourse.grading.course.ledger import Ledger, LedgerError, records
from warpcourse.grading.course.nbgrader_course import Assignment, Course, CourseError, add_assignment
from warpcourse.grading.course.plain_text import on_terminal
from warpcourse.grading.course.similarity import FEWEST, LEAST, Features, Pair, features, ranked
from warpcourse.grading.course.workers import LocalWorkers, NoJudge
from warpcourse.grading.judge.jobs import Job, Key


def main(argv: list[str] | None = None) -> int:
    """Print the report. Return 0, or 2 for wrong use."""
    arguments = _parser().parse_args(argv)
    try:
        course = Course(arguments.course)
        assignment = course.assignment(course.name_of(arguments.assignment))
        of_class = {student: kernels for student, (_, kernels) in graded(course, assignment.name, least=2).items()}
        given = _given(course, assignment)
    except (CourseError, LedgerError, NoJudge) as error:
        print(on_terminal(f"error: {error}"), file=sys.stderr)
        return 2
    pairs = ranked(_alone(of_class), given, arguments.least, arguments.fewest)
    print(on_terminal(_report(course, assignment.name, len(of_class), pairs, arguments.top)))
    if arguments.csv:
        _write_csv(arguments.csv, pairs)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warplab similar",
        description="Compare the kernels of all graded submissions of an assignment. What the solution or the release "
        "contains does not count, what many have counts little. The list only tells whom to look at.",
    )
    add_assignment(parser)
    parser.add_argument("--top", type=int, default=30, metavar="N", help="pairs to list (default: 30)")
    parser.add_argument(
        "--least", type=float, default=LEAST, metavar="X", help=f"skip pairs less similar (0 to 1, default: {LEAST})"
    )
    parser.add_argument(
        "--fewest",
        type=int,
        default=FEWEST,
        metavar="N",
        help=f"leave out pairs that share fewer instructions of their own (default: {FEWEST})",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write all pairs to a table")
    return parser


def graded(course: Course, assignment: str, least: int = 1) -> dict[str, tuple[dict[str, Any], dict[str, str]]]:
    """Return, by student, the record of the last grading and PTX by kernel with argument types.

    Raises `CourseError` if fewer than `least` have kernels.
    """
    folder = course.grading / "ledger"
    last: dict[str, dict[str, Any]] = {}
    if (folder / "ledger.jsonl").is_file():
        for record in records(folder):
            if record["kind"] == "result" and record["assignment"] == assignment and record["kernels"]:
                last[record["student"]] = record
    if len(last) < least:
        raise CourseError(
            f"{len(last)} graded submissions of {assignment} have kernels, but {least} are needed; "
            f"run python -m warplab grade {assignment} first"
        )
    objects = Ledger(folder)
    return {student: (record, json.loads(objects.get(record["kernels"]))) for student, record in last.items()}


def _given(course: Course, assignment: Assignment) -> dict[str, Features]:
    """Return kernel with argument types -> features of solution or release, both graded as submissions."""
    source = course.source(assignment.name) / f"{assignment.name}.ipynb"
    texts = {"solution": source.read_text(), "release": release.release_text(source)}
    jobs = [
        Job(
            Key(assignment.name, name, "", ""),
            nbformat.writes(assignment.master),
            {source.name: text.encode()},
            assignment.files,
            "given",
        )
        for name, text in texts.items()
    ]
    found: dict[str, Features] = defaultdict(Counter)
    for result in LocalWorkers(1).run(jobs):
        if result.status != "graded":
            raise CourseError(f"the {result.key.student} of {assignment.name} cannot be graded: {result.reason}")
        for kernel, ptx in result.kernels.items():
            found[kernel] |= features(ptx)
    return found


def _alone(graded: dict[str, dict[str, str]]) -> dict[str, dict[str, Features]]:
    """Return each kernel's features for the most common argument types only: others would repeat them."""
    counts = Counter(name for theirs in graded.values() for name in theirs)
    chosen: dict[str, str] = {}
    for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        chosen.setdefault(_variable(name), name)
    known: dict[str, Features] = {}  # PTX -> its features, since many submit the same
    found: dict[str, dict[str, Features]] = {}
    for student, theirs in graded.items():
        found[student] = {}
        for name, ptx in theirs.items():
            if name in chosen.values():
                if ptx not in known:
                    known[ptx] = features(ptx)
                found[student][name] = known[ptx]
    return found


def _variable(name: str) -> str:
    """Return the name of a kernel without the types of its arguments."""
    return name.partition("(")[0]


def _report(course: Course, assignment: str, count: int, pairs: list[Pair], top: int) -> str:
    lines = [f"{assignment}: {count} submissions compared by the PTX of their kernels; {len(pairs)} similar pairs."]
    for number, pair in enumerate(pairs[:top], start=1):
        one, other = pair.students
        kernels = ", ".join(f"{_variable(name)} {n}" for name, n in pair.shared.items())
        lines += [
            "",
            f"{number}. {one} and {other}: {pair.alike:.0%} similar outside of solution and release",
            f"   {pair.weight:.0f} bits; instructions that only these two share with each other: {kernels}",
            *(f"   {course.submitted(student, assignment)}" for student in pair.students),
        ]
    if len(pairs) > top:
        lines += ["", f"{len(pairs) - top} more pairs: --top {len(pairs)}"]
    lines += [
        "",
        "This is no verdict. Right answers to a small problem look alike, and so do common mistakes. Students may have",
        "been allowed to work together, or have learnt from the same page. Read both notebooks, and ask.",
    ]
    return "\n".join(lines)


def _write_csv(path: Path, pairs: list[Pair]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "other", "alike", "bits", "instructions", "kernels"])
        for pair in pairs:
            names = " ".join(map(_variable, pair.shared))
            row = [*pair.students, f"{pair.alike:.3f}", f"{pair.weight:.1f}", sum(pair.shared.values()), names]
            writer.writerow(row)
