"""Three times of one inference on a GPU, which answer different questions.

gpu      between events, with everything queued ahead: the GPU's work, launch gaps on it included, the host's left out
latency  on the host's clock from the call until the result is there: what one who waits for an answer waits
steady   on the host's clock per run when runs are queued one after the other without waiting: throughput. The larger
         of the host's time and the GPU's.
"""

import time
from collections.abc import Callable
from typing import Any

from warpcourse.bench import timing

RUNS = 200
QUEUED = 10  # runs queued ahead: with 57 launches each they fit into the driver's queue of about a thousand


def times(queue: Callable[[], Any]) -> dict[str, float]:
    """Measure `gpu_seconds`, `latency_seconds` and `steady_seconds` of `queue`, which queues a run on CuPy's current
    stream."""
    cupy = timing.cupy_on_gpu()
    wait = cupy.cuda.Device().synchronize

    def run() -> None:
        queue()
        wait()

    timed = timing.time_together({"": timing.Candidate(queue)}, rounds=5, runs=QUEUED)
    found = {"gpu_seconds": timed[""].seconds}
    found["latency_seconds"] = timing.time_host(run, runs=RUNS, warmup=20).seconds
    started = time.perf_counter()
    for _ in range(RUNS):
        queue()
    wait()
    found["steady_seconds"] = (time.perf_counter() - started) / RUNS
    return found
