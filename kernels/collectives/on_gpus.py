"""The engine on GPUs: each message is a copy from one GPU's memory to another's, queued on its link's stream and
ordered by events (message_plan.py); sums are added by the GPU that gets them.

`graph=True` records the same into one CUDA graph, which the host launches as a whole. A graph cannot hold
cudaMemcpyPeerAsync; cudaMemcpyAsync finds out by the addresses that it copies between GPUs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels.collectives.gpu_ranks import SECONDS, Ranks
from kernels.collectives.interpreter import check_arrays
from kernels.collectives.message_plan import ADD, COPY, PLACE, STAGE, Lane, LaneOperation, operations
from kernels.collectives.schedule import Schedule, check_schedule


def run(
    schedule: Schedule,
    arrays: Sequence[np.ndarray],
    *,
    graph: bool = False,
    devices: Sequence[int] | None = None,
    seconds: float = SECONDS,
) -> list[np.ndarray]:
    """Return what each rank holds after the schedule, run on GPUs; `arrays` stay as they are.

    `arrays`: one per rank, all of one shape and dtype. `devices`: the GPU of each rank, rank r on GPU r if not given.
    Raise ScheduleError, ValueError or TypeError as the interpreter does, PeerAccessError where GPUs cannot reach each
    other, GpuTimeout naming the links that have not delivered within `seconds`.
    """
    check_schedule(schedule)
    check_arrays(schedule, arrays)
    ranks = Ranks(schedule.ranks, devices)
    messages = Messages(schedule, ranks, ranks.put(arrays), graph=graph)
    messages.launch()
    messages.wait(seconds)
    return ranks.get(messages.buffers)


class Messages:
    """The operations of a checked schedule on buffers of GPUs, to be launched as often as wanted.

    `buffers`: CuPy arrays, one on the GPU of each rank, C-contiguous, which each launch changes. Launches follow
    each other on rank 0's stream.
    """

    def __init__(self, schedule: Schedule, ranks: Ranks, buffers: Sequence[Any], *, graph: bool = False) -> None:
        self.schedule, self.ranks, self.buffers = schedule, ranks, list(buffers)
        self._flat = [buffer.reshape(-1) for buffer in buffers]
        self._operations = operations(schedule)
        self._streams: dict[Lane, Any] = {}
        for operation in self._operations:
            if operation.lane not in self._streams:
                self._streams[operation.lane] = ranks.stream(operation.lane.rank)
        self._scratch = {
            rank: self._empty_like(rank)
            for rank in {o.send.destination for o in self._operations if o.kind in (ADD, PLACE)}
        }
        lasts = {operation.lane: operation.number for operation in self._operations}
        awaited = {number for operation in self._operations for number in operation.waits} | set(lasts.values())
        self._events = {n: ranks.event(self._operations[n].lane.rank) for n in sorted(awaited)}
        self._last = {lane: self._events[number] for lane, number in lasts.items()}
        self._begin = ranks.event(0)
        self._graph = self._captured() if graph else None

    def launch(self) -> None:
        """Queue all operations, in rank 0's stream after what is there."""
        if self._graph:
            with self.ranks.on(0) as stream:
                self._graph.launch(stream)
        else:
            self._queue(peer=True)

    def wait(self, seconds: float = SECONDS) -> None:
        """Wait for what was launched; raise GpuTimeout, naming the links that have not delivered after `seconds`."""
        lanes = list(self._last)
        end = self.ranks.event(0)
        end.record(self.ranks.streams[0])
        if self._graph:  # a graph's inner events cannot be asked
            self.ranks.wait_for([end], seconds, lambda late: (f"the graph had not ended after {seconds:g} s", [0]))
            return

        def message(late: list[int]) -> tuple[str, list[int]]:
            links = sorted({(lanes[n].source, lanes[n].destination) for n in late if n < len(lanes)})
            text = ", ".join(f"from rank {source} to rank {destination}" for source, destination in links)
            text = f"the messages {text} had not all come after {seconds:g} s"
            return text, sorted({destination for _, destination in links})

        self.ranks.wait_for([*self._last.values(), end], seconds, message)

    def _empty_like(self, rank: int) -> Any:
        with self.ranks.on(rank):
            return self.ranks.cupy.empty_like(self._flat[rank])

    def _captured(self) -> Any:
        origin = self.ranks.streams[0]
        for buffers in (self._flat, list(self._scratch.values())):
            for buffer in buffers:
                self._warm_up(buffer)
        with self.ranks.on(0):
            origin.begin_capture()
            self._queue(peer=False)
            return origin.end_capture()

    def _warm_up(self, buffer: Any) -> None:
        """Compile the addition: a module cannot be loaded while a graph is being captured."""
        with buffer.device:
            some = self.ranks.cupy.empty(1, buffer.dtype)
            self.ranks.cupy.add(some, some, out=some)
            buffer.device.synchronize()

    def _queue(self, peer: bool) -> None:
        origin = self.ranks.streams[0]
        self._begin.record(origin)
        begun = set()
        for operation in self._operations:
            stream = self._streams[operation.lane]
            if operation.lane not in begun:
                begun.add(operation.lane)
                stream.wait_event(self._begin)
            for number in operation.waits:
                stream.wait_event(self._events[number])
            self._start(operation, stream, peer)
            if operation.number in self._events:
                self._events[operation.number].record(stream)
        for event in self._last.values():
            origin.wait_event(event)

    def _start(self, operation: LaneOperation, stream: Any, peer: bool) -> None:
        send, n = operation.send, self._flat[0].size
        part = self.schedule.elements(send, n)
        if part.start == part.stop:
            return
        here = self._flat[send.destination][part]
        if operation.kind in (COPY, STAGE):
            to = here if operation.kind == COPY else self._scratch[send.destination][part]
            self._copy(to, self._flat[send.source][part], send.destination, send.source, stream, peer)
        elif operation.kind == PLACE:
            came = self._scratch[send.destination][part]
            self._copy(here, came, send.destination, send.destination, stream, peer)
        else:
            with self.ranks.on(send.destination, stream):
                self.ranks.cupy.add(here, self._scratch[send.destination][part], out=here)

    def _copy(self, to: Any, from_: Any, destination: int, source: int, stream: Any, peer: bool) -> None:
        runtime = self.ranks.cupy.cuda.runtime
        there, here = self.ranks.devices[destination], self.ranks.devices[source]
        with self.ranks.cupy.cuda.Device(self.ranks.devices[source]):
            if peer and there != here:
                runtime.memcpyPeerAsync(to.data.ptr, there, from_.data.ptr, here, to.nbytes, stream.ptr)
            else:
                runtime.memcpyAsync(to.data.ptr, from_.data.ptr, to.nbytes, runtime.memcpyDefault, stream.ptr)
