"""A class's right kernels by estimated time."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.attack_harness import NAME, RIGHT, TESTS, Target
from tests.warpcourse.grading.course.test_similarity import compiled
from warpcourse.grading.course import board_command
from warpcourse.grading.course.ledger import Ledger

KEY = "scale(float32[::1], float32[::1])"
SLOW = RIGHT["scale"].replace("    if i", "    for k in range(40):\n        cuda.syncthreads()\n    if i")
WRONG = RIGHT["scale"].replace("3 *", "2 *")


def handed_in(root, **kernels: tuple[str, float]) -> None:
    """Put kernels into the ledger as the grading does: student=(source, points of each test)."""
    with Ledger(root / "grading" / "ledger") as ledger:
        for student, (text, points) in kernels.items():
            record = {"kind": "result", "assignment": NAME, "student": student, "submission": student, "tests": ""}
            record["kernels"] = ledger.put(json.dumps({KEY: compiled(text)}).encode())
            ledger.append({**record, "scores": {test: [points, 1.0] for test in TESTS}})


def test_right_kernels_are_listed_by_estimated_time(tmp_path, capsys):
    Target(tmp_path)
    handed_in(
        tmp_path,
        slow=(SLOW, 1.0),
        first=(RIGHT["scale"], 1.0),
        same=(RIGHT["scale"], 1.0),
        lost=(RIGHT["scale"], 0.0),
        forged=(WRONG, 1.0),
    )
    assert board_command.main([NAME, "--course", str(tmp_path), "--names"]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(r"^ +(\d+) +([\d.e+]+) µs  (.*?) +(\w+)$", printed, re.MULTILINE)
    assert [(place, who) for place, _, _, who in rows] == [("1", "first"), ("1", "same"), ("3", "slow")]
    times = [float(time) for _, time, _, _ in rows]
    assert times[0] == times[1] < times[2]
    assert board_command.main([NAME, "--course", str(tmp_path), "--top", "1"]) == 0
    printed = capsys.readouterr().out
    assert "first" not in printed
    assert printed.count("µs") == 1


@pytest.mark.parametrize("arguments", [[NAME], ["92_nowhere"]])
def test_a_board_without_kernels_says_what_to_do(tmp_path, capsys, arguments):
    Target(tmp_path)
    assert board_command.main([*arguments, "--course", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")
