"""Time the unseen launches on a GPU: `python -m evidence.unseen_launches.record`.

Times go to the file of the kernel (`recordings`) after each launch; none is printed, so that whoever runs this sees no
time of what is put aside. Launches that are recorded already are
left out. A kernel whose small case is wrong on the GPU is not timed.

How a time is taken: as in all benchmarks of the course (`warpcourse.bench.timing`). Launches that are `warm` run again
and again on one set of data; others take turns on as many sets as leave nothing of theirs in the L2.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from evidence.unseen_launches import recordings
from evidence.unseen_launches.catalogue import launches
from evidence.unseen_launches.unseen import Case, UnseenKernel, UnseenLaunch, equal
from warpcourse.bench import lab_kernels, timing

RUNS, ROUNDS = 10, 3
AHEAD = 12  # launches whose data are made while others are timed
MOST_BYTES = 16e9  # of the sets of one launch


def main(argv: Sequence[str] | None = None) -> int:
    """Record what is missing, for so many seconds at most."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="begin no launch after this time")
    parser.add_argument("--match", default="", help="only launches with this in their names")
    arguments = parser.parse_args(argv)
    timing.require_gpu("Timing the unseen launches")
    begin, failed, wrong = time.monotonic(), 0, {}
    about = timing.machine()
    card = recordings.name_of(about["device"])
    todo = [one for one in launches() if arguments.match in one[0] and not recordings.is_recorded(one[1], one[0], card)]
    for (name, kernel, one), data in _prepared(todo):
        if time.monotonic() - begin > arguments.seconds:
            print("time is up; run again for the others")
            return 1
        try:
            if kernel.name not in wrong:
                wrong[kernel.name] = difference(kernel)
            if wrong[kernel.name]:
                raise ValueError(f"wrong on this GPU: {wrong[kernel.name]}")
            recordings.add(kernel, name, _timed(kernel, one, data.result()), about)
        except Exception as error:  # the other launches go on
            failed += 1
            print(f"{name}: failed, {type(error).__name__}: {error}"[:300], flush=True)
        else:
            print(f"{name}: recorded", flush=True)
    return int(failed > 0)


def _prepared(todo: Sequence[tuple]) -> Iterator[tuple]:
    """Each launch with its data, made ahead by threads."""
    waiting: deque = deque()
    with ThreadPoolExecutor(AHEAD) as threads:
        try:
            for item in todo:
                _, kernel, one = item
                waiting.append((item, threads.submit(kernel.case(**one.timed).arguments)))
                if len(waiting) > AHEAD:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def difference(kernel: UnseenKernel) -> str:
    """Say what is wrong with the kernel's small case on this GPU; "" if nothing."""
    case = kernel.case(**kernel.tested)
    arguments = case.arguments()
    before = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    placed = _on_gpu(arguments)
    _launch(kernel, case, placed)
    for number, values in case.expected(*before).items():
        if not equal(placed[number].get(), np.asarray(values), kernel.tolerance):
            return f"argument {number} of {kernel.name} differs from NumPy's"
    return ""


def _on_gpu(arguments: Sequence[Any]) -> list[Any]:
    import cupy

    return [cupy.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments]


def _launch(kernel: UnseenKernel, case: Case, arguments: Sequence[Any]) -> None:
    lab_kernels.launch(kernel.function(), case.grid, case.block, _native(kernel, arguments), case.shared_bytes)


def _native(kernel: UnseenKernel, arguments: Sequence[Any]) -> tuple:
    """Arguments as the kernel's language takes them fastest."""
    return tuple(timing.native(kernel.language, x) if getattr(x, "shape", ()) else x for x in arguments)


def _timed(kernel: UnseenKernel, one: UnseenLaunch, arguments: tuple) -> dict[str, Any]:
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    case, function = kernel.case(**one.timed), kernel.function()
    nbytes = sum(x.nbytes for x in arguments if isinstance(x, np.ndarray))
    count = 1 if kernel.warm else min(timing.sets_beyond_l2(nbytes, RUNS), max(1, int(MOST_BYTES // nbytes)))
    first = _on_gpu(arguments)
    sets = [first, *([x.copy() if hasattr(x, "get") else x for x in first] for _ in range(count - 1))]
    candidate = timing.Candidate(
        lambda *given: lab_kernels.launch(function, case.grid, case.block, given, case.shared_bytes),
        [_native(kernel, one_set) for one_set in sets],
    )
    taken = timing.time_together({"": candidate}, rounds=ROUNDS, runs=RUNS)[""]
    return {
        "kernel": kernel.name,
        "language": kernel.language,
        "parameters": dict(one.timed),
        "grid": case.grid,
        "block": case.block,
        "shared_bytes": case.shared_bytes,
        "warm": kernel.warm,
        "sets": count,
        "seconds": taken.seconds,
        "fastest_seconds": taken.fastest,
        "slowest_seconds": taken.slowest,
        "runs": taken.runs,
    }


if __name__ == "__main__":
    sys.exit(main())
