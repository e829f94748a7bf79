"""The hostile submissions of tests/grading/attacks: in the sandbox, by one worker, two, a cluster, and by stock nbgrader."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator

import pytest
from distributed import LocalCluster

from tests.support.attack_harness import (
    NAME,
    Attack,
    Listener,
    Target,
    attacks,
    autograde_as_it_comes,
    grade,
    left_behind,
    seen,
    stock_seen,
    told,
)
from warplab.grading.course import workers
from warplab.grading.course.workers import DaskWorkers, LocalWorkers
from warplab.grading.judge.jobs import Job, Result
from warplab.grading.judge.judge import Judge
from warplab.grading.sandbox import isolation, relay, zygote_client

ATTACKS = attacks()
# They wait for a limit, or make much work on their way to it.
DEAR = {
    "forge/artefacts",
    "forge/grows",
    "kernel/compiler_works",
    "kernel/endless",
    "kernel/ptx_enormous",
    "read/memory",
}
# The others are graded again, in other ways.
CHEAP = [attack for attack in ATTACKS if attack.name not in DEAR and not attack.name.startswith("process/")]
# What was measured of nbgrader 0.9.6 when our own grading was begun; tools/attacks_page.py tries the others, too.
TAMPERING = [
    attack
    for attack in ATTACKS
    if attack.name
    in (
        "tamper/patched_assert",
        "tamper/patched_builtins",
        "tamper/ast_transformer",
        "tamper/equals_everything",
        "tamper/mutated_inputs",
        "tamper/reads_source",
        "tamper/gradebook",
        "tamper/exits",
        "tamper/warns",
        "read/hidden_cells",
        "read/arguments",
    )
]
boxed = pytest.mark.skipif(isolation.find().kind != "bubblewrap", reason="needs bubblewrap")


def test_the_attacks_are_all_there():
    groups = {attack.name.partition("/")[0] for attack in ATTACKS}
    assert groups == {"tamper", "read", "forge", "process", "kernel", "notebook"}
    assert len(ATTACKS) >= 50
    assert {attack.name.partition("/")[0] for attack in CHEAP} == groups - {"process"}
    assert len(CHEAP) >= 35
    assert {attack.name for attack in ATTACKS} > DEAR
    assert len(TAMPERING) == 11


@boxed
def test_no_attack_gains_a_point_or_costs_another_one(tmp_path):
    """All of them in one class, in bubblewrap, by two judges."""
    with Listener().open() as listener:
        target = Target(tmp_path, port=listener.port)
        target.hand_in_all(ATTACKS)
        records = grade(target, ATTACKS, LocalWorkers(2))
        assert listener.heard == []
    assert_no_process_is_left()
    assert_as_expected(target, ATTACKS, records)
    assert {record["sandbox"] for record in records.values()} == {"bubblewrap"}
    for student in records:
        shown = target.shown(student)
        assert b"Score:" in shown, student
        for what, secret in target.secrets.items():
            assert secret.encode() not in shown, (student, what)
        path = tmp_path / "grading" / "autograded" / student / NAME / f"{NAME}.ipynb"
        assert path.stat().st_size < 4 << 20, student


def assert_as_expected(target: Target, chosen: Iterable[Attack], records: dict) -> None:
    assert target.honest().items() <= target.scores().items()
    wrong = {}
    for attack in chosen:
        got, reason = seen(target, attack, records[attack.student]), told(records[attack.student])
        tried = not attack.prints or re.search(r"^(TRIED|GOT)", target.outputs(attack.student), re.MULTILINE)
        if got != attack.expects or not re.search(attack.word, reason) or not tried:
            wrong[attack.name] = (got, reason, "" if tried else "it did not run")
    assert wrong == {}


def assert_no_process_is_left() -> None:
    deadline = time.monotonic() + 10
    while left := left_behind():
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


class HereWorkers:
    """One judge, in this process."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        with Judge() as judge:
            for job in jobs:
                yield judge.grade(job)


@boxed
def test_no_secret_goes_to_the_students_process(tmp_path, monkeypatch):
    """Every byte that a judge sends to a kernel's process is looked at; the scores of one worker beside it."""
    target = Target(tmp_path)
    target.hand_in_all(CHEAP)
    sent = record_what_is_sent(monkeypatch)
    records = grade(target, CHEAP, HereWorkers())
    assert_as_expected(target, CHEAP, records)
    everything = b"\n".join(sent)
    for expected in (b"def double(x)", b'"describe', b"assert_allclose"):  # the recording works
        assert expected in everything
    assert target.argument.encode() in everything  # a function is told what it is called with
    assert target.canary.encode() not in everything
    assert target.seed.encode() not in everything
    assert b"HIDDEN TESTS" not in everything


def record_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that leaves towards the sandbox from now on: files, connection, messages, command line, environment."""
    sent: list[bytes] = []
    start, write, command, environment = (
        zygote_client.ZygoteClient.start,
        relay.Relay._write,
        isolation.Bubblewrap.command,
        isolation.Bubblewrap.environment,
    )

    def recorded_start(self, files, limits, header=None, descriptors=(), program="kernel"):
        sent.append(repr((header, list(files))).encode())
        sent.extend(files.values())
        return start(self, files, limits, header, descriptors, program)

    def recorded_write(self, end):
        if end.counter is not None:  # the kernel's side
            sent.append(bytes(end.waiting))
        return write(self, end)

    def recorded_command(self, *arguments):
        sent.append(repr(found := command(self, *arguments)).encode())
        return found

    def recorded_environment(self):
        sent.append(repr(found := environment(self)).encode())
        return found

    monkeypatch.setattr(zygote_client.ZygoteClient, "start", recorded_start)
    monkeypatch.setattr(relay.Relay, "_write", recorded_write)
    monkeypatch.setattr(isolation.Bubblewrap, "command", recorded_command)
    monkeypatch.setattr(isolation.Bubblewrap, "environment", recorded_environment)
    return sent


def test_scores_on_dask_are_the_same(tmp_path):
    target = Target(tmp_path)
    target.hand_in_all(CHEAP)
    options = {"threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with LocalCluster(1, processes=False, **options) as cluster:
        try:
            records = grade(target, CHEAP, DaskWorkers(cluster.scheduler_address))
        finally:
            while workers._idle:
                workers._idle.pop().kill()  # which in a worker's process end with it
    assert_as_expected(target, CHEAP, records)


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # of nbgrader's
def test_the_tampering_group_succeeds_against_nbgrader_as_it_comes(tmp_path):
    """So that the suite would notice a defence that is none."""
    target = Target(tmp_path, without_kernel=True)
    target.hand_in_all(TAMPERING)
    autograde_as_it_comes(target)
    found = {attack.name: stock_seen(target, attack) for attack in TAMPERING}
    assert found == {attack.name: attack.stock for attack in TAMPERING}
    scores = target.scores()
    assert scores["honest-right"] == target.honest()["honest-right"]
    assert scores["honest-wrong"] == target.honest()["honest-wrong"]
    assert scores["honest-friend"] == target.honest()["honest-right"]  # who has friends
