"""The engine over processes: each rank is a process, on this machine or on several, and sends by MPI.

python -m kernels.collectives.over_mpi --ranks 4                          the ring all-reduce, checked and timed
python -m kernels.collectives.over_mpi --ranks 4 --algorithm ring_broadcast --slices 16 --elements 4000000
python -m kernels.collectives.over_mpi --ranks 8 --hosts a,b              over machines
python -m kernels.collectives.over_mpi --ranks 4 --fail 2:dies            what happens if rank 2 dies, or hangs
"""

import argparse
import contextlib
import functools
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kernels.collectives import interpreter, recursive, ring, tree
from kernels.collectives.bandwidth import bus_bandwidth
from kernels.collectives.interpreter import check_arrays
from kernels.collectives.mpi_ranks import SECONDS, MpiMissing, Rank, RankFailed, RankLate, be_rank, launch
from kernels.collectives.schedule import Schedule, ScheduleError, Send, check_schedule

ALGORITHMS: dict[str, Callable[[int, int], Schedule]] = {
    "ring_broadcast": ring.ring_broadcast,
    "ring_reduce_scatter": ring.ring_reduce_scatter,
    "ring_all_gather": ring.ring_all_gather,
    "ring_all_reduce": ring.ring_all_reduce,
    "tree_broadcast": tree.tree_broadcast,
    "tree_all_reduce": tree.tree_all_reduce,
    "recursive_doubling_all_reduce": recursive.recursive_doubling_all_reduce,
}
FAILURES = "dies", "hangs"
_SPIN = 100  # looks at the messages before the process yields the processor


def run(
    schedule: Schedule, arrays: Sequence[np.ndarray], *, seconds: float = SECONDS, fail: str | None = None
) -> list[np.ndarray]:
    """Return what each rank holds after the schedule, run by as many processes on this machine; `arrays` stay as is.

    `arrays`: one per rank, of one shape and dtype. `fail`: "2:dies" or "2:hangs", to see what an error looks like.
    Raise ScheduleError, ValueError or TypeError as the interpreter does, RankFailed, naming the rank, if one dies or
    has not done within `seconds`, MpiMissing without MPI.
    """
    check_schedule(schedule)
    check_arrays(schedule, arrays)
    with tempfile.TemporaryDirectory(prefix="warplab-mpi-") as folder:
        for rank, array in enumerate(arrays):
            np.save(_given(folder, rank), array, allow_pickle=False)
        (Path(folder) / "schedule.json").write_text(json.dumps(asdict(schedule)))
        arguments = ["--folder", folder, "--seconds", str(seconds), *(["--fail", fail] if fail else [])]
        launch(__spec__.name, arguments, schedule.ranks, seconds=seconds)
        return [np.load(_result(folder, rank), allow_pickle=False) for rank in range(schedule.ranks)]


def run_rank(schedule: Schedule, array: np.ndarray, rank: Rank, at_step: Callable[[int], None] | None = None) -> None:
    """Do this rank's part of a checked schedule on its array, C-contiguous, which is changed.

    Raise RankLate at the rank's deadline, naming those that have not sent. `at_step`: called before each step.
    """
    from mpi4py import MPI

    flat, me = array.reshape(-1), rank.number
    n, communicator = flat.size, rank.communicator
    for step, sends in enumerate(schedule.by_step()):
        if at_step:
            at_step(step)
        mine = [send for send in sends if me in (send.source, send.destination)]
        read = {i for send in mine if send.source == me for i in send.slices}
        requests, others, came = [], [], []
        for send in mine:
            part = flat[schedule.elements(send, n)]
            if send.destination == me:
                # What is added, or still read in this step, is kept aside.
                aside = send.reduce or not read.isdisjoint(send.slices)
                buffer = np.empty_like(part) if aside else part
                if aside:
                    came.append((send, part, buffer))
                requests.append(communicator.Irecv([buffer, MPI.BYTE], send.source, step % 2**15))
                others.append(send.source)
            else:
                requests.append(communicator.Isend([part, MPI.BYTE], send.destination, step % 2**15))
                others.append(send.destination)
        _wait(MPI, requests, others, rank.deadline, step)
        for send, part, buffer in came:
            if send.reduce:
                part += buffer
            else:
                part[...] = buffer


def _wait(mpi: Any, requests: list[Any], others: list[int], deadline: float, step: int) -> None:
    looks = 0
    while not mpi.Request.Testall(requests):
        looks += 1
        if looks % _SPIN == 0:
            if time.monotonic() > deadline:
                late = {other for request, other in zip(requests, others, strict=True) if not request.Test()}
                raise RankLate(sorted(late), step)
            time.sleep(2e-5)  # there may be more ranks than processors


def _given(folder: str, rank: int) -> Path:
    return Path(folder) / f"given-{rank}.npy"


def _result(folder: str, rank: int) -> Path:
    return Path(folder) / f"result-{rank}.npy"


# --- Ranks' programs -------------------------------------------------------------------------------------------------


def _run_given(folder: str, fail: str | None, rank: Rank) -> dict[str, Any]:
    found = json.loads((Path(folder) / "schedule.json").read_text())
    schedule = Schedule(**found | {"sends": [Send(**send) for send in found["sends"]]})
    array = np.array(np.load(_given(folder, rank.number), allow_pickle=False), order="C")
    run_rank(schedule, array, rank, _failing(fail, rank.number, schedule.steps))
    np.save(_result(folder, rank.number), array, allow_pickle=False)
    return {}


def _run_own(chosen: argparse.Namespace, rank: Rank) -> dict[str, Any]:
    """Run on numbers that every rank can make, check the result, and time it."""
    schedule = ALGORITHMS[chosen.algorithm](rank.ranks, chosen.slices)
    check_schedule(schedule)
    arrays = [
        np.random.default_rng(chosen.seed + number).integers(-99, 100, chosen.elements).astype(np.float32)
        for number in range(rank.ranks)
    ]
    want = interpreter.run(schedule, arrays)[rank.number]
    at_step = _failing(chosen.fail, rank.number, schedule.steps)
    seconds, right = [], True
    for _ in range(chosen.repeat):
        array = arrays[rank.number].copy()
        ready = rank.communicator.Ibarrier()
        _wait(sys.modules["mpi4py.MPI"], [ready], [(rank.number - 1) % rank.ranks], rank.deadline, 0)
        start = time.perf_counter()
        run_rank(schedule, array, rank, at_step)
        seconds.append(time.perf_counter() - start)
        right &= bool(np.array_equal(array, want))
    return {"seconds": seconds, "right": right}


def _failing(fail: str | None, me: int, steps: int) -> Callable[[int], None] | None:
    """Return what makes this rank fail in the middle of the schedule, if `fail` names it."""
    if not fail:
        return None
    number, how = fail.split(":")

    def at_step(step: int) -> None:
        if int(number) == me and step == steps // 2:
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(3600)

    return at_step


def _failure(text: str) -> str:
    number, _, how = text.partition(":")
    if not number.isdigit() or how not in FAILURES:
        raise argparse.ArgumentTypeError(f"{text!r}: write RANK:dies or RANK:hangs, such as 2:dies")
    return text


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number from 1 to 10 ** 9")
    return int(text)


def _duration(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} must be seconds, more than 0")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.collectives.over_mpi", description="Run a collective over processes by MPI."
    )
    parser.add_argument("--ranks", type=_count, default=4)
    parser.add_argument("--algorithm", choices=list(ALGORITHMS), default="ring_all_reduce")
    parser.add_argument("--slices", type=_count, help="default: as many as ranks")
    parser.add_argument("--elements", type=_count, default=1_000_000, help="float32 per rank (default: %(default)s)")
    parser.add_argument("--repeat", type=_count, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=_duration, default=SECONDS, help="time limit (default: %(default)s)")
    parser.add_argument("--hosts", help="machines, comma separated; this one if not given")
    parser.add_argument("--fail", type=_failure, help="RANK:dies or RANK:hangs in the middle of the schedule")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0, or 1 if a result was wrong or a rank failed."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser()
    chosen = parser.parse_args(given)
    if chosen.as_rank:
        work = functools.partial(_run_given, chosen.folder, chosen.fail) if chosen.folder else None
        return be_rank(chosen.seconds, work or functools.partial(_run_own, chosen))
    chosen.slices = chosen.slices or chosen.ranks
    if chosen.fail and int(chosen.fail.partition(":")[0]) >= chosen.ranks:
        parser.error(f"--fail {chosen.fail}: there is no such rank; ranks are 0 to {chosen.ranks - 1}")
    try:
        check_schedule(schedule := ALGORITHMS[chosen.algorithm](chosen.ranks, chosen.slices))
        passed = [*given, "--slices", str(chosen.slices)]
        results = launch(__spec__.name, passed, chosen.ranks, seconds=chosen.seconds, hosts=chosen.hosts)
    except (RankFailed, MpiMissing, ScheduleError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    times = [max(of_ranks) for of_ranks in zip(*(result["seconds"] for result in results), strict=True)]
    seconds, nbytes = statistics.median(times), 4 * chosen.elements
    right = all(result["right"] for result in results)
    bus = bus_bandwidth(schedule.collective, nbytes, seconds, chosen.ranks)
    print(
        f"{chosen.algorithm}, {chosen.ranks} ranks, {chosen.slices} slices, {chosen.elements:,} float32, seed "
        f"{chosen.seed}: {'right' if right else 'WRONG'} on all ranks. Median of {chosen.repeat}: "
        f"{seconds * 1e3:.3g} ms, algorithm bandwidth {nbytes / seconds / 1e9:.3g} GB/s, bus bandwidth "
        f"{bus / 1e9:.3g} GB/s"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
