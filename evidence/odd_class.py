"""Take a class of twelve odd submissions from a platform's archive to what it imports, in two commands; keep the log.

    python -m evidence.odd_class        writes evidence/odd_class.md; the exit status is 1 if a grade is wrong

The submissions are those of tests/support/odd_class.py: edited tests, a Windows zip with backslashes, an archive in an
archive, a link, Latin-1, a wrong name and deleted cells, blank, no notebook, nothing at all, two names that differ in
their Unicode form, 40 MiB of outputs (handed in late in Canvas), an empty file.
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.support.class_harness import TINY, tiny_course
from tests.support.odd_class import POINTS, canvas, moodle
from warpcourse.paths import COURSE

PAGE = COURSE / "evidence" / "odd_class.md"


def main() -> int:
    parts, wrong = [], False
    for platform in (moodle, canvas):
        log, differences = graded(platform)
        wrong |= bool(differences)
        parts.append(f"## {platform.__name__.title()}\n\n```\n{log}```\n")
        print(log, *differences, sep="\n")
    text = f"""# A class of twelve odd submissions, in two commands

<!-- Written by evidence/odd_class.py on {datetime.now(UTC):%Y-%m-%d}; do not edit. -->

The students: {" ".join(__doc__.split(" of tests/support/odd_class.py: ")[1].split())}
A course of one small exercise (3 points, 30 on the platform) in an empty folder; seconds are of a busy machine. Each
grade is compared with what the submission deserves.

"""
    PAGE.write_text(text + "\n".join(parts), encoding="utf-8")
    return int(wrong)


def graded(platform: Callable[[Path, Path], list[str]]) -> tuple[str, list[str]]:
    """Return the log of both commands, and which grades are not what they should be."""
    with tempfile.TemporaryDirectory() as folder:
        course = tiny_course(Path(folder) / "course")
        archive, *roster = platform(course, Path(folder))
        collect = ["collect", TINY, archive, *roster]
        log = _run(course, collect) + _run(course, ["grade", TINY, "--csv", platform.__name__])
        made = course / "grading" / "collected" / f"{TINY}-{platform.__name__}.csv"
        rows = list(csv.DictReader(io.StringIO(made.read_text(encoding="utf-8"), newline="")))[-len(POINTS) :]
        column = next(name for name in rows[0] if name == "Grade" or "Tiny" in name)
        log += f"$ cat {made.name}, without other columns\n"
        log += "".join(f"{(row.get('Identifier') or row['ID'])}: {row[column]}\n" for row in rows)
        differences = [
            f"{number}: {row[column]}, deserved: {points}"
            for (number, points), row in zip(POINTS.items(), rows, strict=True)
            if row[column] != ("" if points is None else f"{10 * points:.2f}")
        ]
        return log.replace(str(course), "COURSE").replace(folder, "DOWNLOADS"), differences


def _run(course: Path, arguments: list[str]) -> str:
    started = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(COURSE), "WARPLAB_BACKEND": "simulator"}
    command = [sys.executable, "-m", "warplab", *arguments, "--course", str(course)]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = re.sub(r"\n{2,}", "\n", ran.stdout)
    shown = " ".join(["python -m warplab", *arguments])
    return f"$ {shown}\n{said}(exit status {ran.returncode}, {time.monotonic() - started:.0f} s)\n\n"


if __name__ == "__main__":
    raise SystemExit(main())
