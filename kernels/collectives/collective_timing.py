"""Times of collectives on GPUs: ours and NCCL's in the same way, in turns.

A sample is a row of equal calls, queued while rank 0's stream is held, so that the host's launch time stays out; all
ranks begin together, and the clock of rank 0's GPU stops when the last rank has ended (that fork and join, some µs, is
shared out to the calls of the row, as in nccl-tests). As a graph, the row is recorded
into one CUDA graph, which is launched. Seconds of a call: the sample over its calls; the result is the median.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from kernels.collectives.gpu_ranks import Ranks
from warpcourse.bench.timing import Timing
from warplab.launch.stream_delay import hold_stream

Launch = Callable[[], None]  # queues one call on the ranks' streams

_SECONDS = 10.0  # time limit of a row of calls


class TimedCalls:
    """`calls` launches one after another, ready to be timed. `graph`: recorded into one CUDA graph. `prepare` is
    called before each sample, outside the clock; `check` after it, with what the calls left: `correct` says whether all
    checks were passed.
    """

    def __init__(
        self,
        ranks: Ranks,
        launch: Launch,
        calls: int,
        *,
        graph: bool = False,
        prepare: Launch = lambda: None,
        check: Callable[[int], bool] | None = None,  # is given the number of calls
    ) -> None:
        self._ranks, self._launch, self._calls, self._prepare, self._check = ranks, launch, calls, prepare, check
        self.correct = True
        self._forked = ranks.event(0)
        self._joined = [ranks.event(rank) for rank in range(len(ranks))]
        self._begin, self._end = ranks.event(0, timing=True), ranks.event(0, timing=True)
        launch()  # compiles, loads, connects
        ranks.wait("the first call", _SECONDS)
        start = time.perf_counter()
        self._queue()
        self._host_seconds = time.perf_counter() - start
        ranks.wait("a row of calls", _SECONDS)
        self._graph = self._captured() if graph else None

    def sample(self) -> float:
        """Return seconds of a call."""
        ranks = self._ranks
        self._prepare()
        with ranks.on(0) as stream:
            hold_stream(1e-4 if self._graph else 2 * self._host_seconds + 1e-4)
            self._begin.record(stream)
            if self._graph:
                self._graph.launch(stream)
            else:
                self._queue()
            self._end.record(stream)
        ranks.wait("a row of calls", _SECONDS)
        if self._check:
            self.correct &= self._check(self._calls)
        return ranks.cupy.cuda.get_elapsed_time(self._begin, self._end) / 1e3 / self._calls

    def _queue(self) -> None:
        self._ranks.fork(self._forked)
        for _ in range(self._calls):
            self._launch()
        self._ranks.join(self._joined)

    def _captured(self) -> Any:
        with self._ranks.on(0) as stream:
            stream.begin_capture()
            self._queue()
            return stream.end_capture()


def time_together(rows: Mapping[str, TimedCalls], rounds: int = 5, samples: int = 3) -> dict[str, Timing]:
    """Time every row in turns, every second round backwards."""
    found: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(rounds):
        for name in list(rows) if turn % 2 == 0 else reversed(list(rows)):
            rows[name].sample()  # the first after another's finds what that left in caches
            found[name] += [rows[name].sample() for _ in range(samples)]
    return {name: Timing.of(values) for name, values in found.items()}
