"""A class's right kernels by estimated time."""

from __future__ import annotations

import json
import os
import re
from unittest import mock

import nbformat
import pytest

from tests.support.attack_harness import NAME, RIGHT, TESTS, Target
from tests.warpcourse.grading.course.test_similarity import compiled
from warpcourse.grading.course import board_command
from warpcourse.grading.course.ledger import Ledger
from warpcourse.grading.sandbox.isolation import LimitsOnly, find
from warpcourse.grading.sandbox.kernel_manager import Zygotes
from warpcourse.grading.sandbox.zygote_client import Ended
from warplab.checks.kernel_run import KernelRun

KEY = "scale(float32[::1], float32[::1])"
SLOW = RIGHT["scale"].replace("    if i", "    for k in range(40):\n        cuda.syncthreads()\n    if i")
WRONG = RIGHT["scale"].replace("3 *", "2 *")
# The launch of one element, which would be estimated at less, takes more instructions than any other.
IDLE = """    k = 0
    a = i
    while y.size == 1 and k < 300:
        a = (a * 1103515245 + 12345) ^ k
        k += 1
    if a == -5:
        y[0] = 0
    if i"""


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
        idle=(SLOW.replace("    if i", IDLE), 1.0),
    )
    assert board_command.main([NAME, "--course", str(tmp_path), "--names"]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(r"^ +(\d+) +([\d.e+]+) µs  (.*?) +(\w+)$", printed, re.MULTILINE)
    places = [("1", "first"), ("1", "same"), ("3", "slow"), ("4", "idle")]
    assert [(place, who) for place, _, _, who in rows] == places
    times = [float(time) for _, time, _, _ in rows]
    assert times[0] == times[1] < times[2] < times[3]
    assert board_command.main([NAME, "--course", str(tmp_path), "--top", "1"]) == 0
    printed = capsys.readouterr().out
    assert "first" not in printed
    assert printed.count("µs") == 1


@pytest.mark.parametrize("arguments", [[NAME], ["92_nowhere"]])
def test_a_board_without_kernels_says_what_to_do(tmp_path, capsys, arguments):
    Target(tmp_path)
    assert board_command.main([*arguments, "--course", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    "bare",
    [
        pytest.param(False, marks=pytest.mark.sandbox),
        pytest.param(True, marks=pytest.mark.skipif(os.geteuid() != 0, reason="as an ordinary user it may write")),
    ],
)
def test_kernels_run_in_the_sandbox_alone(tmp_path, capsys, monkeypatch, bare):
    """Where no file of the instructor's can be written."""
    monkeypatch.setattr(board_command, "Zygotes", lambda: Zygotes(LimitsOnly("a test") if bare else find()))
    monkeypatch.setattr(KernelRun, "simulate", lambda *_, **__: pytest.fail("a kernel ran in the command's process"))
    Target(tmp_path)
    path = tmp_path / "solutions" / NAME / f"{NAME}.ipynb"
    source = nbformat.read(path, 4)
    source.cells[0].source += f"\ntry:\n    open({str(tmp_path / 'reached')!r}, 'w')\nexcept OSError:\n    pass"
    nbformat.write(source, path)
    handed_in(tmp_path, ada=(RIGHT["scale"], 1.0))
    assert board_command.main([NAME, "--course", str(tmp_path), "--names"]) == 0
    said = capsys.readouterr()
    assert re.findall(r"µs .* (\w+)$", said.out, re.MULTILINE) == ["ada"]
    assert ("*** WARNING ***" in said.err) == bare
    assert not (tmp_path / "reached").exists()


@pytest.mark.parametrize(
    "answer",
    [b"", b"[" * 99_999, b"3", b'{"scale": 3}', b'{"other": [1.0, "x"]}', b'{"scale": [1e999, "x"]}']
    + [b'{"scale": [-1.0, "x"]}', b'{"scale": [1.0, 2]}', b'{"scale": [true, "x"]}', b"\xff"],
)
def test_an_answer_that_is_none_leaves_its_student_out(tmp_path, capsys, monkeypatch, answer):
    monkeypatch.setattr(board_command, "Zygotes", mock.MagicMock())
    monkeypatch.setattr(board_command, "answer_of", lambda *_: (answer, Ended("exit", "the kernel ended by itself")))
    Target(tmp_path)
    handed_in(tmp_path, ada=(RIGHT["scale"], 1.0))
    assert board_command.main([NAME, "--course", str(tmp_path), "--names"]) == 0
    said = capsys.readouterr()
    assert "ada is left out: the kernel ended by itself." in said.err
    assert "µs" not in said.out


def test_an_unknown_card_is_named(tmp_path, capsys):
    Target(tmp_path)
    assert board_command.main([NAME, "--course", str(tmp_path), "--card", "H1000"]) == 2
    assert "no card is named 'H1000'" in capsys.readouterr().err
