"""Attacks on the grading without bubblewrap: what the documentation promises of it holds, and no more is expected."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.support.attack_harness import Listener, Target, attacks, grade, left_behind, seen
from tests.support.class_harness import RIGHT, TINY, answered, hand_in, scores, tiny_course
from tests.support.waiting import until
from warpcourse.grading.course.workers import LocalWorkers
from warpcourse.grading.sandbox import isolation
from warpcourse.grading.sandbox.users import POOL
from warpcourse.paths import COURSE

ATTACKS = [attack for attack in attacks() if attack.name.startswith("limits/")]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="submissions of an ordinary user run as that user")


@AS_ROOT
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


@AS_ROOT
def test_what_would_read_every_file_is_graded_only_if_asked_for(tmp_path):
    """A Python that only root can read leaves a submission the right to read."""
    course, secret, closed = tiny_course(tmp_path / "course"), tmp_path / "secret", tmp_path / "closed"
    secret.write_text("for root's eyes")
    secret.chmod(0o600)
    hand_in(course, "eve", answered(course, f"{RIGHT}\nprint(open({str(secret)!r}).read())"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", closed], check=True)
    closed.chmod(0o700)
    paths = [str(COURSE), *(path for path in sys.path if path.endswith("-packages"))]
    environment = {**os.environ, isolation.SWITCH: "limits", "PYTHONPATH": os.pathsep.join(paths)}
    command = [closed / "bin" / "python", "-m", "warplab", "grade", TINY, "--no-feedback", "--course", course]

    refused = {name: value for name, value in environment.items() if name != isolation.READS}
    done = subprocess.run(command, env=refused, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert "they could read every file of this machine. Install bubblewrap" in said
    assert "set WARPLAB_SUBMISSIONS_READ=all to grade all the same" in said
    assert scores(course) == {}

    done = subprocess.run(command, env={**environment, isolation.READS: "all"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "read every file of this machine" in done.stderr
    assert scores(course) == {"eve": [1.0, 2.0]}
    (graded,) = (course / "grading" / "autograded").rglob("*.ipynb")
    assert "for root's eyes" in str(nbformat.read(graded, 4).cells), "the warning is wrong"
