"""Ranks on GPUs: a device and a stream for each, access to each other's memory, and waiting with a time limit.

Nothing here waits for ever. What runs is watched by events, which the host polls; a kernel that spins reads a word in
the host's memory now and then (signals.cuh), by which the host ends it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernels.collectives.sizes import rank_names
from warpcourse.bench import timing

SECONDS = 30.0  # time limit, if none is given
_POLL = 50e-6
_MOST_URGENT = -5  # priorities of streams; a GPU takes what it does not know as its most urgent


# From the numbers of events that have not come: what is to be said, and the ranks that it names.
Message = Callable[[list[int]], tuple[str, list[int]]]


class PeerAccessError(RuntimeError):
    """Two GPUs that cannot reach each other's memory."""


class GpuTimeout(TimeoutError):
    """Work on GPUs that had not ended within its time limit. `ranks`: those that it hung at."""

    def __init__(self, message: str, ranks: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


def chosen_devices(k: int, devices: Sequence[int] | None, present: int) -> list[int]:
    """Return the GPU of each of k ranks, rank r on GPU r unless `devices` says otherwise. ValueError if that fails."""
    if k < 1:
        raise ValueError(f"a collective has at least one rank, not {k}")
    found = list(range(k)) if devices is None else list(devices)
    if len(found) != k:
        raise ValueError(f"{len(found)} devices for {k} ranks; give one per rank")
    if missing := sorted({device for device in found if not 0 <= device < present}):
        raise ValueError(
            f"{k} ranks want GPU {', '.join(map(str, missing))}, and this machine has {present or 'none'}: take fewer "
            "ranks, or let ranks share a GPU, such as devices=[0, 0]"
        )
    return found


def connect(devices: Sequence[int], runtime: Any) -> None:
    """Let each GPU reach the memory of every other. `runtime`: cupy.cuda.runtime. PeerAccessError if a pair cannot."""
    before = runtime.getDevice()
    try:
        for here in sorted(set(devices)):
            runtime.setDevice(here)
            for there in sorted(set(devices) - {here}):
                if not runtime.deviceCanAccessPeer(here, there):
                    raise PeerAccessError(
                        f"GPU {here} cannot access the memory of GPU {there} (neither NVLink nor PCIe joins them as "
                        "peers): choose other GPUs by devices=[...], or let NCCL run it, which goes through the host"
                    )
                try:
                    runtime.deviceEnablePeerAccess(there)
                except runtime.CUDARuntimeError as error:
                    if "AlreadyEnabled" not in str(error):
                        raise PeerAccessError(
                            f"GPU {here} could not be given access to the memory of GPU {there}: {error}. Look whether "
                            "the driver's other programs see that GPU (nvidia-smi)"
                        ) from error
    finally:
        runtime.setDevice(before)


class Ranks:
    """k ranks on GPUs. `devices`: the GPU of each; several ranks may share one. `urgent`: the blocks of these streams'
    kernels take the next free multiprocessor, before those of others.

    Raise ValueError where there are too few GPUs, PeerAccessError where they cannot reach each other.
    """

    def __init__(self, k: int, devices: Sequence[int] | None = None, *, urgent: bool = False) -> None:
        self.devices = chosen_devices(k, devices, timing.gpu_count())
        import cupy

        self.cupy, self._priority = cupy, _MOST_URGENT if urgent else 0
        connect(self.devices, cupy.cuda.runtime)
        self.streams = [self.stream(rank) for rank in range(k)]
        self._word = cupy.cuda.alloc_pinned_memory(4)
        self._called_off = np.frombuffer(self._word, np.uint32, 1)
        self._called_off[0] = 0

    def __len__(self) -> int:
        return len(self.devices)

    @property
    def abort(self) -> np.uint64:
        """Return the address of the word that ends kernels which wait, as they take it."""
        return np.uint64(self._word.ptr)

    def stream(self, rank: int) -> Any:
        """Return a new stream on the rank's GPU, that waits for no other."""
        with self.cupy.cuda.Device(self.devices[rank]):
            return self.cupy.cuda.Stream(non_blocking=True, priority=self._priority)

    def event(self, rank: int, timing: bool = False) -> Any:
        """Return a new event of the rank's GPU."""
        with self.cupy.cuda.Device(self.devices[rank]):
            return self.cupy.cuda.Event(disable_timing=not timing)

    @contextmanager
    def on(self, rank: int, stream: Any = None) -> Iterator[Any]:
        """Make the rank's GPU the current one, and its stream, or `stream` on that GPU."""
        stream = stream or self.streams[rank]
        with self.cupy.cuda.Device(self.devices[rank]), stream:
            yield stream

    def put(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Return copies of the arrays, one on each rank's GPU."""
        found = []
        for rank, array in enumerate(arrays):
            with self.on(rank) as stream:
                found.append(self.cupy.array(array, order="C"))
                stream.synchronize()
        return found

    def get(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """Return copies of the ranks' arrays in the host's memory."""
        found = []
        for rank, array in enumerate(arrays):
            with self.on(rank):
                found.append(array.get())
        return found

    def fork(self, event: Any) -> None:
        """Record `event` on rank 0, after which the streams of the other ranks go on."""
        event.record(self.streams[0])
        for stream in self.streams[1:]:
            stream.wait_event(event)

    def join(self, events: Sequence[Any]) -> None:
        """Let rank 0 go on after what all others have been given. `events`: one of each rank's GPU."""
        for stream, event in zip(self.streams[1:], events[1:], strict=True):
            event.record(stream)
            self.streams[0].wait_event(event)

    def wait(self, what: str, seconds: float = SECONDS) -> None:
        """Wait until the ranks' streams are empty. Raise GpuTimeout, naming the ranks at which `what` hangs."""
        events = [self.event(rank) for rank in range(len(self))]
        for event, stream in zip(events, self.streams, strict=True):
            event.record(stream)
        self.wait_for(
            events,
            seconds,
            lambda late: (f"{what} had not ended after {seconds:g} s at {rank_names(late)} of {len(self)}", late),
        )

    def wait_for(self, events: Sequence[Any], seconds: float, message: Message) -> None:
        """Wait for recorded events. Else call kernels off and raise GpuTimeout with this message."""
        late = not_come(events, seconds)
        if not late:
            return
        text, ranks = message(late)
        ended = self.call_off()
        advice = (
            "the kernels that waited were ended; make a new object to go on"
            if ended
            else "what hangs cannot be ended from here: end this process, and look at the GPU with nvidia-smi"
        )
        raise GpuTimeout(f"{text}; {advice}", ranks)

    def call_off(self, seconds: float = 2.0) -> bool:
        """End the kernels that wait for others; whether all streams are empty then."""
        self._called_off[0] = 1
        events = [self.event(rank) for rank in range(len(self))]
        for event, stream in zip(events, self.streams, strict=True):
            event.record(stream)
        ended = not not_come(events, seconds)
        if ended:
            self._called_off[0] = 0
        return ended


def not_come(events: Sequence[Any], seconds: float) -> list[int]:
    """Return numbers of the events that have not come within so many seconds."""
    end = time.monotonic() + seconds
    while late := [number for number, event in enumerate(events) if not event.done]:
        if time.monotonic() > end:
            return late
        time.sleep(_POLL)
    return []
