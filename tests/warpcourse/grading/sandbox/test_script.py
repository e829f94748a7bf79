"""A plain Python file in the sandbox, with an answer through a pipe."""

import os

import pytest

from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.zygote_client import ZygoteClient

LIMITS = SubmissionLimits(wall_seconds=60, cpu_seconds=10, memory_bytes=1 << 30, disk_bytes=8 << 20)
SCRIPT = b"""
import os, sys, beside
os.write(int(sys.argv[1]), (beside.SAID + open("data/x").read()).encode())
"""


@pytest.mark.sandbox
def test_a_script_reads_its_files_and_answers():
    files = {"main.py": SCRIPT, "beside.py": b"SAID = 'found '", "data/x": b"it"}
    with ZygoteClient(find(), "nothing", disk_bytes=LIMITS.disk_bytes) as zygote:
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answer:
            zygote.start(files, LIMITS, {"script": "main.py"}, [writing], program="script")
            os.close(writing)
            assert answer.read() == b"found it"
        ended = zygote.kill()
    assert (ended.reason, ended.code) in {("exit", 0), ("killed", None)}


@pytest.mark.sandbox
def test_a_script_that_fails_ends_with_a_status():
    with ZygoteClient(find(), "nothing", disk_bytes=LIMITS.disk_bytes) as zygote:
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answer:
            zygote.start({"main.py": b"1 / 0"}, LIMITS, {"script": "main.py"}, [writing], program="script")
            os.close(writing)
            assert answer.read() == b""
        while zygote.status() is None:
            pass
        assert zygote.kill().code == 70
