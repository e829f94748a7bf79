"""Measure the grading's speed: a class of 300, and 30 submissions against stock nbgrader. Every score is checked.

    python -m evidence.grading_speed [--students 300] [--against 30] [--workers 2]

generates classes of the tests' sample exercise from its solution, its blank release, wrong answers
and hostile cells, grades them including feedback pages, and prints a table. The exit status is 1 if a score is wrong or
a goal is missed. The classes are in a new temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.support.class_harness import generated_class, own_bytes, wrong_scores, wrong_statuses
from tests.support.sample import SAMPLE
from warpcourse.paths import COURSE
from warplab.text.tables import markdown

GRADE = [sys.executable, "-m", "warplab", "grade", SAMPLE]
NBGRADER = [sys.executable, "-m", "nbgrader"]
SECONDS_GOAL = 360.0  # for 300 submissions
RATIO_GOAL = 3.0
MEMORY_GOAL = 4 << 30  # bytes, of a judge with its sandbox


class Peak:
    """The peak memory of one worker: a judge's process and all below it. Shared pages count once."""

    def __init__(self) -> None:
        self.bytes = 0

    @contextlib.contextmanager
    def watch(self, process: psutil.Process) -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._sample, args=(process, over))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _sample(self, process: psutil.Process, over: threading.Event) -> None:
        while not over.wait(2.0):
            with contextlib.suppress(psutil.Error):
                for judge in process.children():
                    parts = [judge, *judge.children(recursive=True)]
                    self.bytes = max(self.bytes, sum(own_bytes(part) for part in parts))


def timed(command: list[str], folder: Path, peak: Peak | None = None) -> float:
    """Run a command in a course's folder, its output into a file there. Return how many seconds it took."""
    environment = {**os.environ, "PYTHONPATH": str(COURSE)}
    start = time.perf_counter()
    with (folder / "output.txt").open("a") as output:
        process = psutil.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        with peak.watch(process) if peak else contextlib.nullcontext():
            status = process.wait()
    if status:
        raise SystemExit(
            f"{' '.join(command)} ended with status {status}:\n{(folder / 'output.txt').read_text()[-2000:]}"
        )
    return time.perf_counter() - start


def make_stock(folder: Path) -> None:
    """Remove the course's preprocessors from nbgrader's configuration."""
    config = folder / "nbgrader_config.py"
    config.write_text(
        re.sub(r"c\.(Autograde|GenerateFeedback)\.\w+ = (\[.*?\]|\".*?\")\n", "", config.read_text(), flags=re.DOTALL)
    )


def a_class(folder: Path, count: int, workers: int) -> tuple[dict[str, float], list[str]]:
    """Grade a class with hostile students in it. Return its figures, and what was wrong."""
    students = generated_class(folder, count, hostile=0.1)
    peak = Peak()
    seconds = timed([*GRADE, "--workers", str(workers), "--csv", "class.csv"], folder, peak)
    wrong = wrong_scores(folder, students) + wrong_statuses(folder, students)
    print(f"{count} submissions: {dict(Counter(student.hostile or 'honest' for student in students))}", flush=True)
    return {"seconds": seconds, "bytes": peak.bytes}, wrong


def against_nbgrader(folder: Path, count: int, workers: int) -> tuple[dict[str, float], list[str]]:
    """Grade the same honest submissions with the course's grading and with stock nbgrader."""
    ours, stock = folder / "ours", folder / "nbgrader"
    students = generated_class(ours, count)
    generated_class(stock, count)
    make_stock(stock)
    timed([*NBGRADER, "generate_assignment", SAMPLE], stock)
    figures = {
        "grade": timed([*GRADE, "--workers", str(workers), "--no-feedback"], ours),
        "pages": timed([*GRADE, "--workers", str(workers)], ours),
        "autograde": timed([*NBGRADER, "autograde", SAMPLE], stock),
        "generate_feedback": timed([*NBGRADER, "generate_feedback", SAMPLE], stock),
    }
    return figures, wrong_scores(ours, students) + wrong_scores(stock, students)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evidence.grading_speed", description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=300, help="size of the class")
    parser.add_argument("--against", type=int, default=30, help="submissions that nbgrader grades as well")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    machine = f"{datetime.date.today()}, {platform.machine()}, {cores} cores"
    print(f"{machine}, {SAMPLE} exercise, {options.workers} workers", flush=True)
    wrong, missed = [], []
    with tempfile.TemporaryDirectory(prefix="warplab-grading-speed-") as name:
        if options.against:
            figures, wrong = against_nbgrader(Path(name) / "against", options.against, options.workers)
            ratio = figures["autograde"] / figures["grade"]
            rows = [
                ("warplab grade --no-feedback", figures["grade"]),
                ("nbgrader autograde", figures["autograde"]),
                ("warplab grade, feedback only", figures["pages"]),
                ("nbgrader generate_feedback", figures["generate_feedback"]),
            ]
            print(table(("the same submissions", "s", "per minute"), rows, options.against))
            print(f"nbgrader autograde takes {ratio:.2f} times as long (goal: {RATIO_GOAL:g})\n", flush=True)
            if ratio < RATIO_GOAL:
                missed.append("ratio to nbgrader autograde")
        if options.students:
            figures, more = a_class(Path(name) / "class", options.students, options.workers)
            wrong += more
            print(table(("a class", "s", "per minute"), [("warplab grade", figures["seconds"])], options.students))
            print(f"peak memory of a worker and its sandbox: {figures['bytes'] / 2**30:.2f} GiB")
            if figures["seconds"] > SECONDS_GOAL * options.students / 300:
                missed.append("time of the class")
            if figures["bytes"] > MEMORY_GOAL:
                missed.append("memory of a worker")
    for text in wrong:
        print(f"WRONG: {text}")
    if missed:
        print(f"goals missed: {', '.join(missed)}")
    return 1 if wrong or missed else 0


def table(head: tuple[str, str, str], rows: list[tuple[str, float]], count: int) -> str:
    """Return a table of seconds, and of submissions per minute."""
    cells = [(f"`{name}`", f"{seconds:.0f}", f"{60 * count / seconds:.0f}") for name, seconds in rows]
    return markdown(head, cells, numbers=True)


if __name__ == "__main__":
    sys.exit(main())
