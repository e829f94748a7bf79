"""CuPy as far as lab 11's streams need it, on the simulator: kernels run at once, an event's time is its number.

It finds what the code for GPUs would do wrong with any GPU: wrong addresses, sizes, streams, events never recorded. The
order in which work is queued is the order in which it runs, so it shows no race.
"""

from __future__ import annotations

import ctypes
import types
from typing import ClassVar

from warplab import cp
from warplab.simulator.run.device import default_device


class Clock:
    """Milliseconds of the fake GPU: each event that is recorded is one later."""

    now = 0


class Event:
    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self.timed, self.at = not disable_timing, None

    def record(self, stream=None):
        Clock.now += 1
        self.at = Clock.now

    def synchronize(self):
        assert self.at is not None, "nobody recorded this event"


class Stream:
    current: ClassVar[list] = []

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.non_blocking, self.ptr, self.waited = non_blocking, id(self), []

    def __enter__(self):
        self.current.append(self)
        return self

    def __exit__(self, *error):
        self.current.pop()

    def wait_event(self, event):
        assert event.at is not None, "nobody recorded this event"
        self.waited.append(event)

    def synchronize(self):
        pass


Stream.null, Stream.ptds = Stream(null=True), Stream(ptds=True)


def elapsed(start, end):
    """Milliseconds between two events."""
    assert start.timed, "an event made without timing has no time"
    assert end.timed, "an event made without timing has no time"
    return float(end.at - start.at)


def memcpy_async(to, source, nbytes, kind, stream):
    """Between host and simulated device memory, by addresses."""
    device, host = (to, source) if kind == runtime.memcpyHostToDevice else (source, to)
    memory = default_device().memory
    view, there = memory.view(device, nbytes), (ctypes.c_ubyte * nbytes).from_address(host)
    if kind == runtime.memcpyHostToDevice:
        view[:] = there
        memory.mark_initialized(device, nbytes)
    else:
        ctypes.memmove(host, view.tobytes(), nbytes)


runtime = types.SimpleNamespace(
    memcpyHostToDevice=1,
    memcpyDeviceToHost=2,
    memcpyAsync=memcpy_async,
    getDeviceProperties=lambda device: {"name": b"a fake GPU"},
)
cuda = types.SimpleNamespace(
    Event=Event,
    Stream=Stream,
    Device=lambda device=0: types.SimpleNamespace(synchronize=lambda: None),
    get_elapsed_time=elapsed,
    get_current_stream=lambda: Stream.current[-1] if Stream.current else Stream.null,
    alloc_pinned_memory=bytearray,
    runtime=runtime,
)
fake = types.SimpleNamespace(cuda=cuda, empty=cp.empty, zeros=cp.zeros, asarray=cp.asarray, asnumpy=cp.asnumpy)
