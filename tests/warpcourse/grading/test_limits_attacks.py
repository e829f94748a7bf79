"""Attacks on the grading without bubblewrap: what the documentation promises of it holds, and no more is expected."""

import os
from pathlib import Path

import pytest

from tests.support.attack_harness import Listener, Target, attacks, grade, left_behind, seen
from tests.support.waiting import until
from warpcourse.grading.course.workers import LocalWorkers
from warpcourse.grading.sandbox import isolation
from warpcourse.grading.sandbox.users import POOL

ATTACKS = [attack for attack in attacks() if attack.name.startswith("limits/")]


@pytest.mark.skipif(os.geteuid() != 0, reason="as an ordinary user they reach that user's own files and processes")
def test_limits_hold_without_bubblewrap_and_nothing_is_left(tmp_path, monkeypatch):
    assert len(ATTACKS) >= 12
    monkeypatch.setenv(isolation.SWITCH, "limits")
    with Listener().open() as listener:
        target = Target(tmp_path, port=listener.port)
        target.hand_in_all(ATTACKS)
        records = grade(target, ATTACKS, LocalWorkers(2))
    until(lambda: not left_behind(), "the end of every process of an attack")
    assert {record["sandbox"] for record in records.values()} == {"limits"}
    assert target.honest().items() <= target.scores().items()
    found = {attack.name: seen(target, attack, records[attack.student]) for attack in ATTACKS}
    outputs = {attack.name: target.outputs(attack.student) for attack in ATTACKS}
    assert found == {attack.name: attack.limits for attack in ATTACKS}, outputs
    assert [name for name, text in outputs.items() if "TRIED" not in text and "graded" in found[name].status] == []
    folders = map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/run/lock"))
    assert [path for folder in folders for path in folder.glob("*") if path.lstat().st_uid in POOL] == []
