"""A stand-in for CuPy with some GPUs that are NumPy's arrays: what is queued is done at once, events have come.

It finds what the engine on GPUs would do wrong with any GPU: wrong addresses, devices, streams that do not fit.
`broken` holds pairs of devices that cannot reach each other. Streams made while their device is in `stuck` never end
what they are given.
"""

from __future__ import annotations

import contextlib
import ctypes
import types

import numpy as np

GPUS = 4


class Array(np.ndarray):
    """An array that knows its device."""

    place = 0

    def __array_finalize__(self, other):
        self.place = getattr(other, "place", 0)

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self):
        return cuda.Device(self.place)

    def get(self):
        return np.array(self)


class Stream:
    def __init__(self, non_blocking=False, priority=0):
        self.device_id = state.current
        self.ptr = id(self)
        self.stuck = self.device_id in state.stuck

    def __enter__(self):
        assert state.current == self.device_id, "a stream of another device"
        return self

    def __exit__(self, *error):
        pass

    def wait_event(self, event):
        self.stuck = self.stuck or event.stuck

    def synchronize(self):
        assert not self.stuck, "waits for ever"


class Event:
    def __init__(self, disable_timing=False):
        self.device_id, self.stuck = state.current, False

    def record(self, stream):
        assert stream.device_id == self.device_id, "an event of another device"
        self.stuck = stream.stuck

    @property
    def done(self):
        return not self.stuck


class CUDARuntimeError(RuntimeError):
    pass


@contextlib.contextmanager
def _device(number):
    before, state.current = state.current, number
    try:
        yield
    finally:
        state.current = before


class Device:
    def __init__(self, number=None):
        self.id = state.current if number is None else number
        self._contexts = []

    def __enter__(self):
        self._contexts.append(_device(self.id))
        return self._contexts[-1].__enter__()

    def __exit__(self, *error):
        return self._contexts.pop().__exit__(*error)

    def synchronize(self):
        pass


def _enable(there):
    pair = state.current, there
    if pair in state.enabled:
        raise CUDARuntimeError("cudaErrorPeerAccessAlreadyEnabled: peer access is already enabled")
    state.enabled.add(pair)


def _copy(to, source, nbytes, kind, stream):
    ctypes.memmove(to, source, nbytes)


def _copy_to_peer(to, there, source, here, nbytes, stream):
    assert (here, there) in state.enabled or (there, here) in state.enabled
    ctypes.memmove(to, source, nbytes)


def array(values, order="C"):
    found = np.array(values, order=order).view(Array)
    found.place = state.current
    return found


def empty_like(values):
    found = np.empty_like(values).view(Array)
    found.place = state.current
    return found


def add(a, b, out):
    assert a.place == b.place == out.place == state.current, "added on another GPU than it lies on"
    return np.add(a, b, out=out)


state = types.SimpleNamespace(current=0, enabled=set(), broken=set(), stuck=set())


def restart():
    state.current = 0
    for found in (state.enabled, state.broken, state.stuck):
        found.clear()


runtime = types.SimpleNamespace(
    getDevice=lambda: state.current,
    setDevice=lambda number: setattr(state, "current", number),
    getDeviceCount=lambda: GPUS,
    deviceCanAccessPeer=lambda here, there: (here, there) not in state.broken,
    deviceEnablePeerAccess=_enable,
    memcpyAsync=_copy,
    memcpyPeerAsync=_copy_to_peer,
    memcpyDefault=4,
    CUDARuntimeError=CUDARuntimeError,
)


class _Pinned(bytearray):
    ptr = 0


cuda = types.SimpleNamespace(
    Device=Device,
    Stream=Stream,
    Event=Event,
    runtime=runtime,
    alloc_pinned_memory=lambda nbytes: _Pinned(nbytes),
)
