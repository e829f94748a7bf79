"""A worker's memory: what docs/instructors.md promises is what is measured, also while submissions do their worst."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import threading

import psutil
import pytest

from tests.support.attack_harness import TIGHT, Target, attacks, grade
from tests.support.class_harness import own_bytes
from warpcourse.grading.course.workers import MAX_MEMORY, LocalWorkers
from warpcourse.grading.judge import untrusted
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.paths import COURSE

GREEDY = ("process/shared_memory", "process/socket_buffers", "notebook/vast_metadata", "forge/grows")
HOARD = """kept = []
try:
    while True:
        kept.append(bytearray(32 << 20))
except MemoryError:
    print(f"hoarded {len(kept) // 32} GiB")
    kept.clear()
"""
PROMISE = (COURSE / "docs" / "instructors.md").read_text()


def promised(what: str) -> int:
    """Return a number of GiB of the page, in bytes."""
    (number,) = re.findall(rf"([\d.]+) GiB {what}", " ".join(PROMISE.split()))
    return int(float(number) * 2**30)


def test_the_page_names_the_limits():
    parts = {
        "for the judge": MAX_MEMORY,
        "for what reads notebooks": untrusted.MEMORY,
        "for the submission": SubmissionLimits().memory_bytes,
    }
    assert {what: promised(what) for what in parts} == parts
    assert promised("in all") == sum(parts.values()) + promised("for Python itself")


class Peak(threading.Thread):
    """The most memory of a worker so far: this process's children and all below them, shared pages once."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.bytes, self.samples, self._over = 0, 0, threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.05):
            with contextlib.suppress(psutil.Error):
                parts = psutil.Process(os.getpid()).children(recursive=True)
                self.bytes = max(self.bytes, sum(map(own_bytes, parts)))
                self.samples += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self.join()


@pytest.mark.sandbox
def test_a_worker_keeps_its_promise_while_submissions_take_what_they_can(tmp_path):
    """The greedy ones have 1 GiB instead of 4 (`tight`), so that the test does not need 12."""
    target = Target(tmp_path)
    chosen = [attack for attack in attacks() if attack.name in GREEDY]
    assert len(chosen) == len(GREEDY)
    target.hand_in_all(chosen)
    # One process, which its own limit stops. What several take between two looks depends on the machine.
    hoards = dataclasses.replace(chosen[0], name="hoards", cells={"own": HOARD}, edit="", tight="yes")
    target.hand_in(hoards.student, hoards.cells)
    with Peak() as peak:
        records = grade(target, [*chosen, hoards], LocalWorkers(1))
    assert records["hoards"]["status"] in ("graded", "limit")  # its own limit, or a look at it, whichever is first
    assert target.honest().items() <= target.scores().items()
    assert peak.samples > 20
    # The judge needs little, and what reads notebooks and the submission do not work at the same time.
    most = max(TIGHT.memory_bytes, untrusted.MEMORY) + promised("for Python itself")
    assert untrusted.MEMORY < peak.bytes < most, f"{peak.bytes / 2**30:.2f} GiB"
