"""Data-parallel SGD on GPUs: a rank's network computes on one stream, its gradients are summed on another.

With `overlap` the sum of a layer's gradient begins as soon as all ranks have it, while the layers before it are still
computed; without, when the backward pass has ended. The sums come from NCCL, from the relay by TMA or from the engine
of copies, which leaves all multiprocessors to the network.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.collectives.data_parallel import Task
from kernels.collectives.gpu_ranks import SECONDS, Ranks
from kernels.collectives.nccl import Nccl
from kernels.collectives.on_gpus import Messages
from kernels.collectives.perceptron import Perceptron
from kernels.collectives.relays import TmaAllReduce
from kernels.collectives.ring import ring_all_reduce
from kernels.collectives.schedule import check_schedule
from warpcourse.bench.timing import Timing
from warplab.launch.stream_delay import hold_stream

RELAY_BLOCKS = 24  # of the 132: the others go on with the network
SLICES = 4  # of each rank's part, in the engine of copies
WAYS = "nccl", "tma", "copies"


class Training:
    """k ranks that train the same network. `way`: who sums the gradients, one of WAYS; None: nobody."""

    def __init__(self, task: Task, k: int, *, way: str | None = "nccl", overlap: bool = True) -> None:
        if way not in (*WAYS, None):
            raise ValueError(f"no way {way!r} to sum gradients; choose one of {', '.join(WAYS)}, or None")
        self.task, self.overlap, self.way = task, overlap, way
        self.ranks = Ranks(k)
        self.communication = Ranks(k, urgent=True)  # the same GPUs, other streams
        x, labels = task.data()
        self.networks, self._data = [], []
        for rank in range(k):
            with self.ranks.on(rank) as stream:
                self.networks.append(Perceptron(task.sizes, task.seed, self.ranks.cupy))
                parts = [task.part(step, rank, k) for step in range(task.steps)]
                own = [(self.ranks.cupy.asarray(x[part]), self.ranks.cupy.asarray(labels[part])) for part in parts]
                self._data.append(own)
                stream.synchronize()
        self._layers = len(task.sizes) - 1
        self._sums = [self._sum_of(layer) for layer in range(self._layers)]
        self._ready = self._events()
        self._summed = self._events()

    def step(self, number: int, mark: Callable[[str, int, Any], None] = lambda name, rank, stream: None) -> None:
        """Queue a step of training. `mark(name, rank, stream)` is called where a part of it begins and ends."""
        ranks = range(len(self.ranks))
        parts = []
        for rank in ranks:
            with self.ranks.on(rank) as stream:
                mark("forward", rank, stream)
                parts.append(self.networks[rank].backward_by_layer(*self._data[rank][number % self.task.steps]))
        for layer in range(self._layers, -1, -1):  # all ranks a layer at a time: none waits for the host
            for rank in ranks:
                with self.ranks.on(rank) as stream:
                    next(parts[rank])
                    mark(f"backward {layer - 1}" if layer else "wait", rank, stream)
                    if layer < self._layers:
                        self._ready[rank][layer].record(stream)
            if self.overlap and layer < self._layers:
                self._sum(layer, layer, mark)
        if not self.overlap:
            for layer in range(self._layers - 1, -1, -1):
                self._sum(layer, 0, mark)
        for rank in ranks:
            with self.ranks.on(rank) as stream:
                for layer in range(self._layers - 1, -1, -1):
                    if self.way:
                        stream.wait_event(self._summed[rank][layer])
                    if layer == self._layers - 1:
                        mark("update", rank, stream)
                    self.networks[rank].step(layer, self.task.rate / (len(self.ranks) if self.way else 1))
                mark("end", rank, stream)

    def train(self, seconds: float = SECONDS) -> list[list[np.ndarray]]:
        """Do all steps of the task; return each rank's parameters in the end. Raise GpuTimeout after `seconds`."""
        for number in range(self.task.steps):
            self.step(number)
        self.wait(seconds)
        return [self._host(rank) for rank in range(len(self.networks))]

    def wait(self, seconds: float = SECONDS) -> None:
        """Wait for what was queued; raise GpuTimeout, naming ranks, after `seconds`."""
        self.communication.wait("the sum of the gradients", seconds)
        self.ranks.wait("a step of training", seconds)

    def _host(self, rank: int) -> list[np.ndarray]:
        with self.ranks.on(rank):
            return [layer.get() for layer in self.networks[rank].parameters]

    def _events(self) -> list[list[Any]]:
        return [[self.ranks.event(rank) for _ in range(self._layers)] for rank in range(len(self.ranks))]

    def _sum(self, layer: int, after: int, mark: Callable[[str, int, Any], None]) -> None:
        """Queue the sum of a layer's gradients, when all ranks have computed the gradient of layer `after`."""
        if not self.way:
            return
        streams = self.communication.streams
        for rank, stream in enumerate(streams):
            # The engine of copies orders everything by rank 0's stream.
            for other in range(len(streams)) if self.way == "copies" else (rank,):
                stream.wait_event(self._ready[other][after])
            mark(f"sum {layer}", rank, stream)
        self._sums[layer]()
        for rank, stream in enumerate(streams):
            if self.way == "copies" and rank:
                stream.wait_event(self._summed[0][layer])
            self._summed[rank][layer].record(stream)
            mark("idle", rank, stream)

    def _sum_of(self, layer: int) -> Callable[[], None]:
        """Return what queues the sum of a layer's gradients on the streams of communication."""
        buffers = [network.gradients[layer] for network in self.networks]
        if self.way == "copies":
            k = len(self.ranks)
            schedule = ring_all_reduce(k, SLICES * k)
            check_schedule(schedule)
            return Messages(schedule, self.communication, buffers).launch
        if self.way == "nccl":
            if not hasattr(self, "_nccl"):
                self._nccl = Nccl(self.communication)
            return lambda: self._nccl.launch("all-reduce", buffers)
        if self.way == "tma":
            if not hasattr(self, "_relay"):
                shared = max(self.ranks.devices.count(device) for device in self.ranks.devices)
                self._relay = TmaAllReduce(self.communication, blocks=RELAY_BLOCKS // shared)
            return lambda: self._relay.launch(buffers)
        return lambda: None


def time_step(training: Training, steps: int = 5, samples: int = 9) -> Timing:
    """Time a step: a row of steps, from the beginning of the first to the end of the last on the slowest rank, over
    their number. The host queues the row while the streams are held, so that none waits for it.
    """
    ranks = training.ranks
    elapsed, found = ranks.cupy.cuda.get_elapsed_time, []
    begin = [ranks.event(rank, timing=True) for rank in range(len(ranks))]
    end = [ranks.event(rank, timing=True) for rank in range(len(ranks))]
    host_seconds = _queue_seconds(training)
    for _ in range(samples):
        _hold(training, steps * host_seconds)
        for rank, event in enumerate(begin):
            event.record(ranks.streams[rank])
        for number in range(steps):
            training.step(number)
        for rank, event in enumerate(end):
            event.record(ranks.streams[rank])
        training.wait()
        found.append(max(elapsed(first, last) for first, last in zip(begin, end, strict=True)) / 1e3 / steps)
    return Timing.of(found)


def _queue_seconds(training: Training) -> float:
    """Return what the host takes to queue a step, everything loaded."""
    for number in range(2):
        training.step(number)
    training.wait()
    start = time.perf_counter()
    training.step(0)
    seconds = time.perf_counter() - start
    training.wait()
    return seconds


def _hold(training: Training, seconds: float) -> None:
    """Let all ranks begin together, after the host has had twice so many seconds."""
    ranks = training.ranks
    with ranks.on(0):
        hold_stream(2 * seconds + 1e-3)
    ranks.fork(ranks.event(0))


def timeline(training: Training, number: int = 0) -> list[dict[str, Any]]:
    """Return what each stream does in a step: rows of rank, stream ("compute", "communicate"), what, begin and end in
    seconds after the rank's start. Event follows event on a stream, so that a row also holds the wait before it.
    """
    ranks, marks = training.ranks, []

    def mark(name: str, rank: int, stream: Any) -> None:
        event = ranks.event(rank, timing=True)
        event.record(stream)
        marks.append((rank, "compute" if stream == ranks.streams[rank] else "communicate", name, event))

    _hold(training, 2 * _queue_seconds(training))
    training.step(number, mark)
    training.wait()
    rows, last, start = [], {}, {}
    for rank, stream, name, event in marks:
        start.setdefault(rank, event)
        if (rank, stream) in last:
            what, before = last[rank, stream]
            times = [ranks.cupy.cuda.get_elapsed_time(start[rank], e) / 1e3 for e in (before, event)]
            if what not in ("idle", "wait"):
                rows.append({"rank": rank, "stream": stream, "what": what, "begin": times[0], "end": times[1]})
        last[rank, stream] = name, event
    return rows
