"""Memory that no process shows: a control group that counts it, and what is refused or counted where there is none."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import until
from warpcourse.grading.sandbox import memory_group
from warpcourse.grading.sandbox.isolation import LimitsOnly
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.memory_group import SWITCH, MemoryGroup
from warpcourse.grading.sandbox.zygote_client import SandboxError, ZygoteClient
from warpcourse.processes import tree as process_table
from warpcourse.processes.tree import SOCKET_BYTES, STREAM_BYTES, socket_bytes

FILES = {
    "v2": {
        "memory.max": "max",
        "memory.current": "1000",
        "memory.events": "oom 0\noom_kill 0\n",
        "memory.swap.max": "max",
    },
    "v1": {
        "memory.limit_in_bytes": "9223372036854771712",
        "memory.usage_in_bytes": "1000",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    },
}


@pytest.fixture(params=FILES)
def hierarchy(request, tmp_path, monkeypatch):
    """A folder in which new folders get a control group's files. Not a real one: it limits nothing."""
    make = Path.mkdir

    def mkdir(self, *arguments, **options):
        make(self, *arguments, **options)
        if self.name.startswith("warplab-") and self.parent == tmp_path:
            for name, text in {**FILES[request.param], "cgroup.procs": ""}.items():
                (self / name).write_text(text)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    monkeypatch.setenv(SWITCH, str(tmp_path))
    return tmp_path


def test_a_zygote_enters_its_group_and_each_submission_gets_its_memory(hierarchy):
    limits = SubmissionLimits(memory_bytes=1 << 30)
    with ZygoteClient(LimitsOnly(), "nothing") as zygote:
        (group,) = hierarchy.iterdir()
        assert int((group / "cgroup.procs").read_text()) == zygote.pid
        ours, theirs = socket.socketpair()
        with ours, theirs:
            zygote.start(
                {},
                limits,
                {"folder": "", "sockets": [], "hidden": [], "limits": limits.as_dict()},
                [theirs.fileno()],
                "probe",
            )
            (limit,) = (path for path in group.iterdir() if path.name in ("memory.max", "memory.limit_in_bytes"))
            assert int(limit.read_text()) == 1000 + (1 << 30) + memory_group._SPARE
            events = group / ("memory.events" if limit.name == "memory.max" else "memory.oom_control")
            events.write_text(events.read_text().replace("oom_kill 0", "oom_kill 1"))
            until(lambda: zygote.status() is not None, "the end of the probe")
            assert zygote.status().reason == "memory"  # whom Linux killed did not end by itself
    assert list(hierarchy.iterdir()) == []


def test_a_folder_that_is_no_group_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(SWITCH, str(tmp_path))
    with pytest.raises(SandboxError, match=f"{SWITCH} names {tmp_path}.*unset {SWITCH}"):
        ZygoteClient(LimitsOnly(), "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_group_of_cgroup_v1_is_one_in_each_hierarchy_that_is_named(hierarchy, tmp_path, monkeypatch):
    cpu = tmp_path / "cpu"
    cpu.mkdir()
    monkeypatch.setattr(memory_group, "_numbers", iter([7]))
    group = MemoryGroup([hierarchy, cpu])
    name = f"warplab-{os.getpid()}-7"
    assert [folder.is_dir() for folder in (hierarchy / name, cpu / name)] == [True, True]
    subprocess.run(group.command(["true"]), check=True)
    assert len({(folder / "cgroup.procs").read_text() for folder in group.folders}) == 1  # the process's own number
    group.close()
    assert [*hierarchy.iterdir(), *cpu.iterdir()] == [cpu]


@pytest.mark.skipif(not os.environ.get(SWITCH), reason=f"needs a delegated cgroup, named by {SWITCH}")
def test_a_real_group_counts_and_is_removed():
    group = MemoryGroup(memory_group.given())
    group.allow(1 << 30)
    assert group.kills() == 0
    group.close()
    assert not group.folder.exists()


def test_sockets_count_as_what_they_may_hold():
    before = socket_bytes(os.getpid())
    pairs = [socket.socketpair() for _ in range(100)]
    with socket.create_server(("127.0.0.1", 0)):
        more = socket_bytes(os.getpid()) - before
    for pair in pairs:
        for end in pair:
            end.close()
    # Others on this machine open and close sockets meanwhile.
    assert more > 150 * SOCKET_BYTES
    assert STREAM_BYTES > SOCKET_BYTES
    assert socket_bytes(2**22 + 1) == 0


def test_a_process_that_ended_meanwhile_holds_no_memory(monkeypatch):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    seen = process_table.processes()
    child.communicate(b"\n")
    monkeypatch.setattr(process_table, "processes", lambda: {child.pid: seen[child.pid]})
    assert int(seen[child.pid][21]) > 0
    assert process_table.usage(os.getpid(), 0)[2] == 0
