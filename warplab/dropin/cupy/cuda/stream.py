"""cupy.cuda.stream on the simulator: work in a stream is done when the call returns, so each is in order with all."""

from __future__ import annotations

import threading

from warplab import simulator as _simulator
from warplab.dropin import simulated_device as _device
from warplab.dropin.cupy._core.missing import missing as _missing

get_elapsed_time = _device.elapsed_time


class Event:
    """An event. It orders work and has no time: `get_elapsed_time` returns NaN, with a warning."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        pass

    def record(self, stream=None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Stream:
    """A stream; also a context manager, inside which it is this thread's current one. Work in it is done when the call
    returns."""

    ptr = 0
    done = True
    null: Stream
    ptds: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority=None) -> None:
        self.non_blocking, self.priority = non_blocking, priority
        self.device_id = -1 if null or ptds else _simulator.default_device().number

    def __enter__(self) -> Stream:
        _streams().append(self)
        return self

    def __exit__(self, *_) -> None:
        _streams().pop()

    def use(self) -> Stream:
        _streams()[-1] = self
        return self

    def synchronize(self) -> None:
        _simulator.default_device().synchronize()

    def record(self, event: Event | None = None) -> Event:
        return Event() if event is None else event

    def wait_event(self, event: Event) -> None:
        pass

    def add_callback(self, callback, arg) -> None:
        """Call `callback(stream, error, arg)` at once, as all earlier work is done. A GPU calls it in a thread."""
        callback(self, 0, arg)

    def launch_host_func(self, callback, arg) -> None:
        """Call `callback(arg)` at once."""
        callback(arg)

    def begin_capture(self, mode=None) -> None:
        raise NotImplementedError("CUDA graphs are not on the simulator, which runs each launch at once")


class ExternalStream(Stream):
    """A stream of another library, by its number."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__()
        self.ptr, self.device_id = ptr, device_id


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)
_local = threading.local()


def _streams() -> list[Stream]:
    if not hasattr(_local, "streams"):
        _local.streams = [Stream.null]
    return _local.streams


def get_current_stream(device_id: int = -1) -> Stream:
    return _streams()[-1]


def __getattr__(name: str):
    raise _missing("cupy.cuda.stream", name)
