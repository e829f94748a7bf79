"""Commands, statuses and limits in docs/instructors.md exist."""

import re
import subprocess
import sys

from warpcourse.grading.judge.jobs import STATUSES
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.paths import COURSE

INSTRUCTORS = (COURSE / "docs" / "instructors.md").read_text(encoding="utf-8")


def test_commands_of_the_instructors_page_exist():
    own = set(re.findall(r"python -m warplab (\w+)", INSTRUCTORS)) - {"check"}  # for learners
    assert own == {"board", "collect", "export", "grade", "similar"}
    usage = subprocess.run([sys.executable, "-m", "warplab"], cwd=COURSE, capture_output=True, text=True).stdout
    assert all(re.search(rf"^  {command} .*ASSIGNMENT", usage, re.MULTILINE) for command in own)
    from nbgrader.apps.nbgraderapp import NbGraderApp

    theirs = set(re.findall(r"nbgrader (\w+)(?= 01_|`)", INSTRUCTORS)) | {"release_feedback"}
    assert {"generate_assignment", "collect", "autograde"} <= theirs
    assert theirs <= NbGraderApp.subcommands.keys()
    ours = re.sub(r"`nbgrader [^`]*`", "", INSTRUCTORS)
    commands = COURSE / "warpcourse" / "grading" / "course"
    help_ = "".join((commands / f"{command}_command.py").read_text() for command in own)
    for option in set(re.findall(r"(?<![-|])--[a-z][\w-]+", ours)) - {
        "--host",
        "--port",
        "--nworkers",
        "--nthreads",
    }:
        assert f'"{option}"' in help_ or option == "--no-dashboard", option


def test_statuses_and_limits_of_the_instructors_page_are_those_of_the_grader():
    assert tuple(re.findall(r"^\| `(\w+)` \|", INSTRUCTORS, re.MULTILINE)) == STATUSES
    limits = SubmissionLimits()
    text = " ".join(INSTRUCTORS.split())
    assert (
        f"{limits.wall_seconds / 60:.0f} minutes in all and {limits.cpu_seconds / 60:.0f} of processor time "
        f"for its own cells and functions, "
        f"{limits.judge_seconds / 60:.0f} minutes of a judge's processor time for all tests together, "
        f"{limits.memory_bytes >> 30} GiB of memory, {limits.processes} processes and threads, "
        f"{limits.disk_bytes >> 20} MiB of disk in files of at most {limits.file_bytes >> 20} MiB, "
        f"{limits.output_bytes_cell >> 20} MiB of output per cell "
        f"and {limits.output_bytes_notebook >> 20} MiB per notebook"
    ) in text
    timeout = re.search(r"c\.Execute\.timeout = (\d+)", (COURSE / "nbgrader_config.py").read_text())[1]
    assert f"`c.Execute.timeout` in `nbgrader_config.py`, {timeout} seconds" in text
