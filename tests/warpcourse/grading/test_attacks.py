"""The hostile submissions of attacks/: all of them graded in the sandbox; a part of them by one judge, by a cluster,
with whatever isolation there is, and by stock nbgrader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from distributed import LocalCluster

from tests.support.attack_harness import (
    NAME,
    POINTS,
    RIGHT,
    TESTS,
    Attack,
    Listener,
    Target,
    attacks,
    autograde_by_stock_nbgrader,
    grade,
    left_behind,
    seen,
    stock_seen,
    told,
)
from tests.support.grading_harness import HereWorkers
from tests.support.waiting import until
from warpcourse.grading.course import summary, workers
from warpcourse.grading.course.workers import DaskWorkers, LocalWorkers
from warpcourse.grading.sandbox import relay, zygote_client
from warplab import simulator

ATTACKS = attacks()


def chosen(*names: str) -> list[Attack]:
    found = [attack for attack in ATTACKS if attack.name in names]
    assert len(found) == len(names), names
    return found


# What these lack comes from the judge, not from the sandbox: they fail under limits alone, too, whoever grades.
EVERYWHERE = chosen(
    "tamper/ast_transformer",
    "tamper/equals_everything",
    "tamper/exits",
    "tamper/mutated_inputs",
    "tamper/patched_checks",
    "tamper/warns",
    "read/arguments",
    "read/hidden_cells",
    "forge/lies",
    "forge/outputs",
    "kernel/in_disguise",
    "kernel/ptx_code",
    "notebook/deletes_tests",
    "notebook/links",
    "notebook/no_json",
    "notebook/own_points",
    "page/markdown",
)
# Stock nbgrader gives each of them points, shows them what they seek, or fails. evidence/attacks_page.py tries more.
TAMPERING = chosen(
    "tamper/ast_transformer",
    "tamper/equals_everything",
    "tamper/exits",
    "tamper/gradebook",
    "tamper/reads_source",
    "read/arguments",
    "read/hidden_cells",
)


def test_the_attacks_are_all_there():
    groups = {attack.name.partition("/")[0] for attack in ATTACKS}
    assert groups == {"tamper", "read", "forge", "process", "kernel", "notebook", "page", "limits"}
    assert len(ATTACKS) >= 50
    # Attacks of the group "process" take what only a sandbox protects; test_limits_attacks.py tries those of "limits".
    assert {attack.name.partition("/")[0] for attack in EVERYWHERE} == groups - {"process", "limits"}
    assert all(attack.limits == attack.expects for attack in EVERYWHERE)
    assert {attack.expects.status for attack in EVERYWHERE} == {"graded", "student_crash"}


@pytest.mark.sandbox
def test_no_attack_gains_a_point_or_costs_another_one(tmp_path):
    """All of them in one class, by two judges."""
    with Listener().open() as listener:
        target = Target(tmp_path, port=listener.port)
        target.hand_in_all(ATTACKS)
        records = grade(target, ATTACKS, LocalWorkers(2))
        assert listener.heard == []
    until(lambda: not left_behind(), "the end of every process of an attack")
    assert_as_expected(target, ATTACKS, records)
    ran_in = {student: record["sandbox"] for student, record in records.items()}
    for name in ("folder-as-notebook", "folder-link", "student-link", "link-to-itself", "file-as-folder"):
        assert ran_in.pop(f"notebook-{name}") == ""  # refused before any judge
    assert set(ran_in.values()) == {"bubblewrap"}
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
        outputs = target.outputs(attack.student)
        ran = not attack.prints or re.search(r"^(TRIED|GOT)", outputs, re.MULTILINE)
        ran = ran and not re.search(r"^(ImportError|ModuleNotFoundError)$", outputs, re.MULTILINE)  # it went stale
        if got != attack.expects or not re.search(attack.word, reason) or not ran:
            wrong[attack.name] = (got, reason, "" if ran else "it did not run")
    assert wrong == {}


@pytest.mark.sandbox
def test_no_secret_goes_to_the_students_process(tmp_path, monkeypatch, zygotes):
    """Look at every byte that a judge sends to a kernel's process."""
    target = Target(tmp_path)
    target.hand_in_all(EVERYWHERE)
    sent = record_what_is_sent(monkeypatch)
    monkeypatch.setenv("WARPLAB_GRADING_SEED", target.seed)
    sent.append(repr([zygotes.sandbox.command(3, tmp_path, None, 1), zygotes.sandbox.environment()]).encode())
    records = grade(target, EVERYWHERE, HereWorkers(zygotes))
    assert_as_expected(target, EVERYWHERE, records)
    everything = b"\n".join(sent)
    for expected in (b"def double(x)", b'"describe', b"assert_allclose"):  # the recording works
        assert expected in everything
    assert target.argument.encode() in everything  # a function is told what it is called with
    assert target.canary.encode() not in everything
    assert target.seed.encode() not in everything
    assert b"HIDDEN TESTS" not in everything


def record_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record all that goes to a submission from now on: files, connection, messages."""
    sent: list[bytes] = []
    start, write = zygote_client.ZygoteClient.start, relay.Relay._write

    def recorded_start(self, files, limits, header=None, descriptors=(), program="kernel"):
        sent.append(repr((header, list(files))).encode())
        sent.extend(files.values())
        return start(self, files, limits, header, descriptors, program)

    def recorded_write(self, end):
        if end.counter is not None:  # the kernel's side
            sent.append(bytes(end.waiting))
        return write(self, end)

    monkeypatch.setattr(zygote_client.ZygoteClient, "start", recorded_start)
    monkeypatch.setattr(relay.Relay, "_write", recorded_write)
    return sent


def test_scores_on_dask_are_the_same_with_and_without_a_sandbox(tmp_path):
    """With bubblewrap if it is there, otherwise under limits alone."""
    target = Target(tmp_path)
    target.hand_in_all(EVERYWHERE)
    options = {"threads_per_worker": 1, "dashboard_address": None, "local_directory": str(tmp_path / "dask")}
    with LocalCluster(1, processes=False, **options) as cluster:
        try:
            records = grade(target, EVERYWHERE, DaskWorkers(cluster.scheduler_address))
        finally:
            while workers._idle:
                workers._idle.pop().kill()  # in a real worker they end with its process
    assert_as_expected(target, EVERYWHERE, records)


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # of nbgrader's
def test_tampering_succeeds_against_stock_nbgrader(tmp_path):
    """Without this, an attack that attacks nothing would look like a good defence."""
    target = Target(tmp_path, without_kernel=True)
    target.hand_in_all(TAMPERING)
    autograde_by_stock_nbgrader(target)
    found = {attack.name: stock_seen(target, attack) for attack in TAMPERING}
    assert found == {attack.name: attack.stock for attack in TAMPERING}
    scores = target.scores()
    assert scores["honest-right"] == target.honest()["honest-right"]
    assert scores["honest-wrong"] == target.honest()["honest-wrong"]
    assert scores["honest-friend"] == target.honest()["honest-right"]  # who has friends


@pytest.mark.parametrize("everywhere", [False, True])
def test_where_the_simulator_fails_it_is_the_graders_fault_only_if_it_fails_on_the_solution(
    tmp_path, monkeypatch, zygotes, everywhere
):
    target = Target(tmp_path)
    target.hand_in("odd", RIGHT | {"scale": RIGHT["scale"].replace("scale", "odd") + "\nscale = odd"})
    target.hand_in("right", RIGHT)
    launch = simulator.Device.launch

    def failing(device, entry, *arguments, **options):
        if everywhere or "odd" in entry.name:
            raise KeyError("warp 7")
        return launch(device, entry, *arguments, **options)

    monkeypatch.setattr(simulator.Device, "launch", failing)
    records = grade(target, [], HereWorkers(zygotes))
    assert records["odd"]["traces"].keys() == set(TESTS[3:])
    told = summary.text(NAME, target.release, records, {}, [])
    assert "odd: the simulator failed in test-4-kernel: KeyError: 'warp 7' (the trace is in grading/ledger" in told
    if everywhere:
        assert {record["status"] for record in records.values()} == {"infra_error"}
        reason = (
            "The simulator fails in test-4-kernel, test-5-kernel, on the instructor's solution, too: KeyError: 'warp 7'"
        )
        assert {record["reason"] for record in records.values()} == {reason}
        assert target.scores() == {}
    else:
        assert {record["status"] for record in records.values()} == {"graded"}
        assert target.scores() == {"odd": (1.0, 2.0, 1.0, 0.0, 0.0), "right": POINTS}
        assert b"refuses" in target.shown("odd")
        assert b"warp 7" not in target.shown("odd")
