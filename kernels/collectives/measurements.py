"""What lab 10 measures on GPUs: one function per table or plot, each returning numbers in JSON types.

Each is run on 2, 4 and 8 GPUs, as far as the machine has them: {"runs": [...]}. Keys end in their unit: `seconds`,
`gbps` (1e9 bytes per second: algorithm bandwidth, N/t, unless the key says `bus`). Times are medians; `least_seconds`
and `most_seconds`: its fastest and slowest sample. `MEASUREMENTS` names the functions as `recordings.json` does.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.collectives import recordings
from kernels.collectives.bandwidth import bus_factor
from kernels.collectives.collective_timing import TimedCalls, time_together
from kernels.collectives.data_parallel import Task, difference, train_alone
from kernels.collectives.data_parallel_gpu import WAYS, Training, time_step, timeline
from kernels.collectives.gpu_ranks import Ranks
from kernels.collectives.nccl import Nccl, version
from kernels.collectives.nccl_window import symmetric
from kernels.collectives.on_gpus import Messages
from kernels.collectives.relays import OneShotAllReduce, StoreBroadcast, TmaAllReduce, TmaBroadcast, TwoShotAllReduce
from kernels.collectives.ring import ring_all_reduce, ring_broadcast
from kernels.collectives.schedule import check_schedule
from warpcourse.bench import timing
from warpcourse.bench.recordings import Measurement, MissingRecording

COUNTS = 2, 4, 8  # of ranks, one per GPU
N = 2**30  # bytes
SLICES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SIZES = tuple(2**power for power in range(12, 31, 2))  # bytes, of the all-reduce's curve
TILES = ((98304, 2), (65536, 3), (32768, 6), (16384, 12), (8192, 24))  # bytes and stages of the relays by TMA
TOGETHER = 2, 4, 8  # rounds of the all-reduce's relay
SMALL = tuple(2**power for power in range(12, 21))  # bytes
LARGE = 2**26  # bytes, from which on the all-reduce's relay takes large tiles
CALLS = 20  # in a row, of small messages
WINDOW = "NCCL, symmetric window"


def measured(key: str) -> list[Measurement]:
    """Return a run for each number of GPUs, fewest first: live where there are so many here, else as recorded."""
    live = recordings.measure_if_possible(key, MEASUREMENTS[key]) if _counts_here() else None
    runs = {run.value["ranks"]: run for m in (recordings.recorded_if_any(key), live) if m for run in _runs(m)}
    return [runs[ranks] for ranks in sorted(runs)]


def recorded(key: str, ranks: int) -> Measurement:
    """Return the recorded run on so many GPUs. Raise MissingRecording where there is none."""
    found = {run.value["ranks"]: run for run in _runs(recordings.recorded(key))}
    if ranks not in found:
        raise MissingRecording(
            f"{key} was recorded on {', '.join(map(str, found)) or 'no number of'} GPUs, not on {ranks}: run "
            f"`python -m {recordings.package}.benchmark --record --only {key}` on {ranks}"
        )
    return found[ranks]


def _runs(found: Measurement) -> list[Measurement]:
    return [replace(found, value=run) for run in found.value.get("runs", ())]  # before 2026-11-26 there was one run


def origin(runs: Sequence[Measurement]) -> str:
    """Return what a picture of several runs says of their origin: a label, or one for each number of GPUs."""
    labels = {run.label for run in runs}
    return labels.pop() if len(labels) == 1 else "\n".join(f"{run.value['ranks']} GPUs {run.label}" for run in runs)


def _counts_here() -> list[int]:
    return [ranks for ranks in COUNTS if ranks <= timing.gpu_count()]


class _Buffers:
    """A float32 buffer of `nbytes` per rank, and what they begin with: small whole numbers, so that sums are exact.

    `arrays`: the buffers, where they are not any memory.
    """

    def __init__(self, ranks: Ranks, nbytes: int, arrays: Sequence[Any] = ()) -> None:
        self.ranks, self.n = ranks, nbytes // 4
        self.given, self.arrays = [], list(arrays)
        for rank in range(len(ranks)):
            with ranks.on(rank) as stream:
                ranks.cupy.random.seed(1 + rank)
                given = ranks.cupy.random.randint(-99, 100, self.n, dtype=np.int32).astype(np.float32)
                self.given.append(given)
                if arrays:
                    self.arrays[rank][...] = given
                else:
                    self.arrays.append(given.copy())
                stream.synchronize()

    def refill(self) -> None:
        """Put the first contents back, since sums of sums would grow beyond all bounds."""
        for rank, (array, given) in enumerate(zip(self.arrays, self.given, strict=True)):
            with self.ranks.on(rank) as stream:
                array[...] = given
                stream.synchronize()

    def hold(self, collective: str, calls: int) -> bool:
        """Return whether all ranks hold what `calls` collectives in a row, in place, make of the first contents."""
        ranks, right = self.ranks, True
        for rank, output in enumerate(self.arrays):
            with ranks.on(rank) as stream:
                want = _moved(ranks, self.given[0])
                for other in self.given[1:] if collective == "all-reduce" else ():
                    want += _moved(ranks, other)
                if collective == "all-reduce":  # each further call adds k equal buffers: exact for k = 2, 4, 8
                    want *= np.float32(len(ranks) ** (calls - 1))
                right &= bool((abs(output - want) <= 1e-6 * abs(want)).all())
                stream.synchronize()
        return right

    def row(self, launch: Callable[[], None], collective: str, calls: int, graph: bool = False) -> TimedCalls:
        """Return a row of calls whose every sample begins with the first contents and is checked."""
        check = functools.partial(self.hold, collective)
        return TimedCalls(self.ranks, launch, calls, graph=graph, prepare=self.refill, check=check)


def _moved(ranks: Ranks, array: Any) -> Any:
    """Return a copy of an array of any GPU on the current one."""
    here = ranks.cupy.empty_like(array)
    stream = ranks.cupy.cuda.get_current_stream()
    runtime = ranks.cupy.cuda.runtime
    runtime.memcpyAsync(here.data.ptr, array.data.ptr, array.nbytes, runtime.memcpyDefault, stream.ptr)
    return here


def _spread(found: timing.Timing) -> dict[str, float]:
    """Return a time's median, least and most, as rows hold them."""
    return {"seconds": found.seconds, "least_seconds": found.fastest, "most_seconds": found.slowest}


def _timed(made: dict[str, TimedCalls], rounds: int = 5) -> list[tuple[str, timing.Timing, bool]]:
    """Time rows of calls in turns: of each its name, its timing, and whether all its results were right."""
    return [(name, found, made[name].correct) for name, found in time_together(made, rounds).items()]


def _messages(schedule: Any, buffers: _Buffers, graph: bool) -> Messages:
    check_schedule(schedule)
    return Messages(schedule, buffers.ranks, buffers.arrays, graph=graph)


def broadcast_curve(k: int, n: int = N) -> dict[str, Any]:
    """Measure ring broadcast of n bytes by peer copies in S slices, launched one by one and as a CUDA graph."""
    ranks = Ranks(k)
    buffers, rows = _Buffers(ranks, n), []
    for slices in SLICES:
        engines = {
            name: _messages(ring_broadcast(len(ranks), slices), buffers, graph=name == "graph")
            for name in ("copies", "graph")
        }
        made = {name: buffers.row(engine.launch, "broadcast", 3) for name, engine in engines.items()}
        for name, found, correct in _timed(made, 3):
            row = {"engine": name, "slices": slices, "gbps": found.bandwidth(n), "correct": correct}
            rows.append(row | _spread(found))
    return {"ranks": len(ranks), "bytes": n, "rows": rows}


def relay_tiles(k: int, n: int = N) -> dict[str, Any]:
    """Measure the relays by TMA by size of a tile and number of stages, broadcast and all-reduce of n bytes."""
    ranks = Ranks(k)
    buffers, rows = _Buffers(ranks, n), []
    for collective, relays in (("broadcast", _broadcasts(ranks)), ("all-reduce", _relayed_sums(ranks))):
        for name, found, correct in _timed(_made(buffers, relays, collective), 3):
            row = {"collective": collective, "relay": name, "gbps": found.bandwidth(n), "correct": correct}
            rows.append(row | _spread(found))
    return {"ranks": len(ranks), "bytes": n, "rows": rows}


def _broadcasts(ranks: Ranks) -> dict[str, Any]:
    return {f"{piece // 1024} KiB × {deep}": TmaBroadcast(ranks, piece=piece, stages=deep) for piece, deep in TILES}


def _relayed_sums(ranks: Ranks) -> dict[str, Any]:
    return {
        f"{piece // 1024} KiB × {stages}, {together} rounds": TmaAllReduce(
            ranks, piece=piece, stages=stages, together=together
        )
        for piece, stages in TILES
        for together in TOGETHER
    }


def _call(relay: Any, buffers: _Buffers) -> Callable[[], None]:
    return lambda: relay.launch(buffers.arrays)


def _made(buffers: _Buffers, relays: dict[str, Any], collective: str) -> dict[str, TimedCalls]:
    return {name: buffers.row(_call(relay, buffers), collective, 3) for name, relay in relays.items()}


def _best(buffers: _Buffers, relays: dict[str, Any], collective: str) -> tuple[str, Callable[[], None]]:
    """Return the fastest of the relays: its name in a table, and its launch."""
    times = time_together(_made(buffers, relays, collective), 1)
    best = min(times, key=lambda name: times[name].seconds)
    return f"kernel, TMA, {best}", _call(relays[best], buffers)


def broadcast_table(k: int, n: int = N) -> dict[str, Any]:
    """Measure ours beside NCCL's broadcast, n bytes, in turns: copies, the forwarding kernel, the best relay by TMA."""
    ranks = Ranks(k)
    buffers, nccl, stores = _Buffers(ranks, n), Nccl(ranks), StoreBroadcast(ranks)
    slices = 1 if len(ranks) == 2 else 32
    name, relayed = _best(buffers, _broadcasts(ranks), "broadcast")
    launches = {
        f"peer copies, S = {slices}": _messages(ring_broadcast(len(ranks), slices), buffers, graph=False).launch,
        "kernel, stores": _call(stores, buffers),
        name: relayed,
        "NCCL": lambda: nccl.launch("broadcast", buffers.arrays),
    }
    return _table(ranks, buffers, launches, "broadcast", n)


def all_reduce_table(k: int, n: int = N) -> dict[str, Any]:
    """Measure the same of the all-reduce; bus bandwidth beside the algorithm's."""
    ranks = Ranks(k)
    buffers, nccl, slices = _Buffers(ranks, n), Nccl(ranks), 4 * len(ranks)
    name, relayed = _best(buffers, _relayed_sums(ranks), "all-reduce")
    launches = {
        f"peer copies, S = {slices}": _messages(ring_all_reduce(len(ranks), slices), buffers, graph=False).launch,
        name: relayed,
        "NCCL": lambda: nccl.launch("all-reduce", buffers.arrays),
    }
    return _table(ranks, buffers, launches, "all-reduce", n)


def _window(ranks: Ranks, n: int) -> tuple[Nccl | None, list[Any], dict[str, str]]:
    """Return an NCCL of its own and buffers of n bytes in its symmetric window; else None, none, and why."""
    try:
        nccl = Nccl(ranks)  # of its own: whatever fails costs these rows alone
        window = symmetric(nccl, n // 4)
        nccl.launch("all-reduce", window)
        nccl.wait("a first all-reduce in the symmetric window")
        return nccl, window, {}
    except Exception as error:
        return None, [], {"no_window": f"{type(error).__name__}: {error}"}


def _table(ranks: Ranks, buffers: _Buffers, launches: dict[str, Any], collective: str, n: int) -> dict[str, Any]:
    made = {name: buffers.row(launch, collective, 3) for name, launch in launches.items()}
    lack: dict[str, str] = {}
    if collective == "all-reduce":
        windowed, window, lack = _window(ranks, n)
        if windowed:
            here = _Buffers(ranks, n, window)
            made[WINDOW] = here.row(lambda: windowed.launch(collective, here.arrays), collective, 3)
    times = time_together(made)
    factor = bus_factor(collective, len(ranks))
    rows = [
        {
            "engine": name,
            **_spread(found),
            "gbps": found.bandwidth(n),
            "bus_gbps": found.bandwidth(n) * factor,
            "ratio_to_nccl": times["NCCL"].seconds / found.seconds,
            "correct": made[name].correct,
        }
        for name, found in times.items()
    ]
    return {"ranks": len(ranks), "bytes": n, "nccl": version(), "collective": collective, "rows": rows} | lack


def _small(ranks: Ranks) -> dict[str, OneShotAllReduce]:
    """Return this lab's all-reduces for small messages, by name; with two ranks two shots send what one does."""
    found: dict[str, OneShotAllReduce] = {"one-shot": OneShotAllReduce(ranks, SMALL[-1])}
    return found | ({"two-shot": TwoShotAllReduce(ranks, SMALL[-1])} if len(ranks) > 2 else {})


def _small_calls(small: dict[str, OneShotAllReduce], buffers: _Buffers) -> dict[str, Callable[[], None]]:
    return {name: functools.partial(engine.launch, buffers.arrays, buffers.arrays) for name, engine in small.items()}


def all_reduce_curve(k: int) -> dict[str, Any]:
    """Measure bus bandwidth of the all-reduce against its size, ours and NCCL's."""
    ranks = Ranks(k)
    factor, rows = bus_factor("all-reduce", k), []
    nccl, small = Nccl(ranks), _small(ranks)
    relays = TmaAllReduce(ranks), TmaAllReduce(ranks, piece=TILES[0][0], stages=TILES[0][1], together=TOGETHER[-1])
    for n in SIZES:
        buffers = _Buffers(ranks, n)
        copies = _messages(ring_all_reduce(k, k if n < 2**24 else 4 * k), buffers, graph=False)
        launches = {
            "peer copies": copies.launch,
            "kernel, TMA": _call(relays[n >= LARGE], buffers),
            "NCCL": lambda b=buffers: nccl.launch("all-reduce", b.arrays),
        }
        if n <= SMALL[-1]:
            launches |= _small_calls(small, buffers)
        made = {name: buffers.row(launch, "all-reduce", 5) for name, launch in launches.items()}
        for name, found, correct in _timed(made, 3):
            row = {"engine": name, "bytes": n, "bus_gbps": found.bandwidth(n) * factor, "correct": correct}
            rows.append(row | _spread(found))
    return {"ranks": k, "nccl": version(), "rows": rows}


def small_messages(k: int) -> dict[str, Any]:
    """Measure all-reduces of 4 KiB to 1 MiB: ours and NCCL's, calls one by one and in a CUDA graph."""
    ranks = Ranks(k)
    nccl, small, rows = Nccl(ranks), _small(ranks), []
    windowed, window, lack = _window(ranks, SMALL[-1])
    for n in SMALL:
        buffers = _Buffers(ranks, n)
        launches = {name: (buffers, launch) for name, launch in _small_calls(small, buffers).items()}
        launches["NCCL"] = buffers, lambda b=buffers: nccl.launch("all-reduce", b.arrays)
        if windowed:
            here = _Buffers(ranks, n, [array[: n // 4] for array in window])
            launches[WINDOW] = here, lambda b=here: windowed.launch("all-reduce", b.arrays)
        for graph in (False, True):
            made = {name: own.row(launch, "all-reduce", CALLS, graph) for name, (own, launch) in launches.items()}
            for name, found, correct in _timed(made):
                row = {"engine": name, "graph": graph, "bytes": n, "correct": correct}
                rows.append(row | _spread(found))
    return {"ranks": k, "nccl": version(), "calls": CALLS, "rows": rows} | lack


TASK = Task(sizes=(2048, 4096, 4096, 4096, 4096, 1000), batch=512, steps=2, rate=0.01)  # batch: of one rank
EQUAL = Task(sizes=(256, 512, 512, 10), batch=512, steps=20, rate=0.05)


def sgd(k: int) -> dict[str, Any]:
    """Measure a step of data-parallel SGD: one GPU, and all with the same batch per GPU, by who sums the gradients, one
    after another and overlapped; and how far the weights are from those of one device with the whole batch.
    """
    first = time_step(Training(TASK, 1, way=None))
    task = Task(TASK.sizes, TASK.batch * k, TASK.steps, TASK.rate)
    rows = []
    reference, _ = train_alone(EQUAL)
    for way in WAYS:
        for overlap in (False, True):
            weights = Training(EQUAL, k, way=way, overlap=overlap).train()
            apart = max(difference(reference, found) for found in weights)
            found = time_step(Training(task, k, way=way, overlap=overlap))
            row = {"way": way, "overlap": overlap, "difference": apart, "correct": apart < 1e-4}
            rows.append(row | _spread(found))
    independent = time_step(Training(task, k, way=None))
    last = time_step(Training(TASK, 1, way=None))  # before and after, as clocks may drift
    alone = (first.seconds + last.seconds) / 2
    for row in rows:
        row["efficiency"] = alone / row["seconds"]
    return {
        "ranks": k,
        "batch_per_rank": TASK.batch,
        "sizes": list(TASK.sizes),
        "gradient_bytes": 4 * sum(a * b + b for a, b in zip(TASK.sizes[:-1], TASK.sizes[1:], strict=True)),
        "one_gpu_seconds": alone,
        "one_gpu_least_seconds": min(first.fastest, last.fastest),
        "one_gpu_most_seconds": max(first.slowest, last.slowest),
        "without_sums_seconds": independent.seconds,
        "rows": rows,
    }


def sgd_timeline(k: int) -> dict[str, Any]:
    """Measure what the streams of all ranks do in one step: the sums after the backward pass and overlapped with it."""
    task = Task(TASK.sizes, TASK.batch * k, TASK.steps, TASK.rate)
    return {
        "ranks": k,
        "one after another": timeline(Training(task, k, way="nccl", overlap=False)),
        "overlapped": timeline(Training(task, k, way="nccl", overlap=True)),
        "overlapped, by copies": timeline(Training(task, k, way="copies", overlap=True)),
    }


def _on_all_counts(measure: Callable[[int], Any]) -> Callable[[], Any]:
    return lambda: {"runs": [measure(k) for k in _counts_here()]}


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    function.__name__: _on_all_counts(function)
    for function in (
        *(broadcast_curve, relay_tiles, broadcast_table, all_reduce_table),
        *(all_reduce_curve, small_messages, sgd, sgd_timeline),
    )
}
