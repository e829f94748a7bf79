"""A schedule of stream operations run on a GPU: the same program that `simulate` runs in virtual time.

Each operation calls its `action` in its stream, between two events; the timeline is what the events measured, with
copies of one engine one after the other (`Timeline.copies_in_turns`).
"""

import time
from collections.abc import Mapping
from typing import Any

from kernels.serving.overlap.streams.schedule import DEFAULT, Operation, Schedule
from kernels.serving.overlap.streams.timeline import TODAY, Span, Timeline
from warpcourse.bench import timing

DECODE_CALL = "decode call"
"""Decoding's row in a measured timeline: until the decoder gave the frame. Events do not see when NVDEC worked."""


def execute(schedule: Schedule, streams: Mapping[str | int, Any] | None = None) -> Timeline:
    """Run the schedule on the GPU and return when each operation ran, in milliseconds by events.

    `streams`: CuPy streams to use, by the schedule's names; others are made. Host work and host waits are timed
    by the host's clock. Ends the program where there is no GPU; ValueError for an operation without an action.
    """
    for o in schedule:
        if o.kind in ("h2d", "d2h", "kernel", "decode", "host") and o.action is None:
            raise ValueError(f"{o} has no action: give action=, a function that queues it in the current stream")
    return _Run(timing.cupy_on_gpu(), schedule, streams or {}).run()


class _Run:
    def __init__(self, cupy: Any, schedule: Schedule, given: Mapping[str | int, Any]) -> None:
        self.cupy, self.schedule = cupy, schedule
        used = {o.stream for o in schedule if o.stream is not None}
        default = cupy.cuda.Stream.null if schedule.default_stream == "legacy" else cupy.cuda.Stream.ptds
        self.streams = {s: given[s] if s in given else self._stream(s, default) for s in used}
        self.events = {o.event: cupy.cuda.Event(disable_timing=True) for o in schedule if o.kind == "record"}
        self.recorded: set[str] = set()

    def _stream(self, name: str | int, default: Any) -> Any:
        return default if name == DEFAULT else self.cupy.cuda.Stream(non_blocking=not self.schedule.blocks(name))

    def run(self) -> Timeline:
        event, device = self.cupy.cuda.Event, self.cupy.cuda.Device()
        pairs = {o.index: (event(), event()) for o in self.schedule if o.stream is not None and o.kind != "sync"}
        device.synchronize()
        origin = event()
        origin.record(next(iter(self.streams.values()), self.cupy.cuda.Stream.null))
        origin.synchronize()
        began = time.perf_counter()
        host: dict[int, tuple[float, float, float]] = {}
        for o in self.schedule:
            issued = time.perf_counter()
            self._issue(o, pairs.get(o.index))
            host[o.index] = (issued - began, issued - began, time.perf_counter() - began)
        device.synchronize()
        spans = []
        for o in self.schedule:
            issued, start, end = (1e3 * t for t in host[o.index])
            if o.index in pairs:
                start, end = (self.cupy.cuda.get_elapsed_time(origin, e) for e in pairs[o.index])
            spans.append(Span(o, DECODE_CALL if o.kind == "decode" else TODAY.engine(o), issued, start, end))
        name = self.cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        return Timeline(tuple(spans), f"{name}, by events").copies_in_turns()

    def _issue(self, o: Operation, pair: Any) -> None:
        if o.kind == "host":
            o.action()
        elif o.kind == "sync":
            self._synchronize(o)
        else:
            stream = self.streams[o.stream]
            pair[0].record(stream)
            if o.kind == "record":
                self.events[o.event].record(stream)
            elif o.kind == "wait":
                if o.event in self.events:
                    stream.wait_event(self.events[o.event])
            else:
                with stream:
                    o.action()
            pair[1].record(stream)

    def _synchronize(self, o: Operation) -> None:
        if o.event is not None:
            if o.event in self.events:
                self.events[o.event].synchronize()
        elif o.stream is not None:
            if o.stream in self.streams:
                self.streams[o.stream].synchronize()
        else:
            self.cupy.cuda.Device().synchronize()
