"""The engine over processes: results, and ranks that die, hang, fail or cannot be reached."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from kernels.collectives import interpreter, mpi_ranks, over_mpi
from kernels.collectives.mpi_ranks import MpiMissing, RankFailed
from kernels.collectives.recursive import recursive_doubling_all_reduce
from kernels.collectives.ring import ring_all_reduce, ring_broadcast
from kernels.collectives.schedule import Schedule, ScheduleError, Send
from tests.support.waiting import HANG
from warpcourse.paths import COURSE

ARRAYS = [np.random.default_rng(rank).standard_normal((7, 13)) for rank in range(4)]


def processes_of(folder_mark: str) -> list[str]:
    """Command lines of running processes that hold this text."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder_mark in line and int(pid) != os.getpid():
            found.append(line)
    return found


@pytest.fixture
def started(monkeypatch):
    """Pids of all ranks that were heard of."""
    pids, real = [], mpi_ranks._Job._follow

    def note(job, rank, pid, host):
        pids.append(pid)
        real(job, rank, pid, host)

    monkeypatch.setattr(mpi_ranks._Job, "_follow", note)
    return pids


def gone(pids) -> bool:
    def alive(pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + HANG
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    "schedule",
    [ring_all_reduce(3, 6), ring_broadcast(2, 5), recursive_doubling_all_reduce(4, 2)],
    ids=lambda schedule: f"{schedule.collective}-{schedule.ranks}",
)
def test_processes_end_as_the_interpreter_says(schedule):
    arrays = ARRAYS[: schedule.ranks]
    found = over_mpi.run(schedule, arrays)
    for got, want in zip(found, interpreter.run(schedule, arrays), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_dies_is_named(rank, started):
    with pytest.raises(RankFailed, match=rf"rank {rank} \(process \d+\) died before the work was done") as caught:
        over_mpi.run(ring_all_reduce(3, 3), ARRAYS[:3], fail=f"{rank}:dies")
    assert caught.value.ranks == (rank,)
    assert len(started) == 3
    assert gone(started)


def test_a_rank_that_hangs_is_named_within_the_time_limit(started):
    with pytest.raises(RankFailed, match=r"rank 1 did not answer within 2 s: .*waited for rank 1 in step") as caught:
        over_mpi.run(ring_all_reduce(3, 3), ARRAYS[:3], fail="1:hangs", seconds=2)
    assert caught.value.ranks == (1,)
    assert gone(started)


def test_a_rank_that_raises_is_named_with_its_traceback(tmp_path, started, monkeypatch):
    (tmp_path / "one_fails.py").write_text(
        "import sys\nfrom kernels.collectives.mpi_ranks import be_rank\n\n\n"
        "def work(rank):\n    return {'tenth': 1 / (rank.number - 1)}\n\n\nsys.exit(be_rank(20, work))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RankFailed, match=r"(?s)rank 1 failed:.*ZeroDivisionError") as caught:
        mpi_ranks.launch("one_fails", [], 2, seconds=20)
    assert caught.value.ranks == (1,)
    assert gone(started)


def test_a_program_that_says_nothing(monkeypatch):
    with pytest.raises(RankFailed, match=r"(?s)ranks 0, 1 of 2 did not start: mpiexec ended.*No module named"):
        mpi_ranks.launch("no_such_module", [], 2)


def test_ranks_that_start_too_slowly(tmp_path, monkeypatch):
    (tmp_path / "sleeps.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(RankFailed, match=r"ranks 0, 1 of 2 did not start: the time limit of 1 s is over"):
        mpi_ranks.launch("sleeps", [str(tmp_path)], 2, starting=1)
    end = time.monotonic() + HANG
    while processes_of(str(tmp_path)) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_of(str(tmp_path)) == []


def test_without_mpi_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(mpi_ranks.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MpiMissing, match=r"there is no mpiexec; the wheel mpich has it: run `make setup`"):
        over_mpi.run(ring_broadcast(2, 1), ARRAYS[:2])


def test_nothing_is_started_for_a_wrong_schedule():
    with pytest.raises(ScheduleError, match="rank 1 does not hold slice 0"):
        over_mpi.run(Schedule("broadcast", 3, 1, (Send(0, 1, 2, 0),)), ARRAYS[:3])
    with pytest.raises(ValueError, match="4 arrays for 2 ranks"):
        over_mpi.run(ring_broadcast(2, 1), ARRAYS)


def test_the_command_starts_the_ranks_itself():
    command = [sys.executable, "-m", "kernels.collectives.over_mpi", "--ranks", "2", "--elements", "1000"]
    done = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert "ring_all_reduce, 2 ranks, 2 slices, 1,000 float32, seed 1: right on all ranks" in done.stdout
    failed = subprocess.run([*command, "--fail", "1:dies"], cwd=COURSE, capture_output=True, text=True, timeout=HANG)
    assert failed.returncode == 1
    assert "error: rank 1 (process " in failed.stderr


def test_another_mpis_mpiexec_is_named(tmp_path, monkeypatch):
    other = tmp_path / "mpiexec"
    other.write_text("#!/bin/sh\necho 'mpiexec (OpenRTE) 4.1.6'\n")
    other.chmod(0o755)
    monkeypatch.setattr(mpi_ranks.sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    said = r"the mpiexec on PATH is not MPICH's.*the wheel mpich has it: run `make setup`"
    with pytest.raises(MpiMissing, match=said):
        mpi_ranks.mpiexec()


@pytest.mark.parametrize(
    "arguments", ["--repeat 0", "--elements -5", "--elements 9999999999", "--seconds nan", "--seconds 0", "--ranks two"]
)
def test_arguments_that_cannot_be_are_named(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        over_mpi.main(arguments.split())
    option, value = arguments.split()
    assert f"argument {option}: {value!r} must be " in capsys.readouterr().err
