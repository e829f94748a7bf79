"""When the operations of a schedule would run on a GPU's engines, in virtual milliseconds.

One copy engine per direction, SMs that kernels share, NVDEC, and the host thread. No time here is a GPU's: it follows
from the durations that the schedule states and from the order that CUDA's rules leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernels.serving.streams import ON_HOST, Operation, Schedule, dependencies


@dataclass(frozen=True)
class Machine:
    """Engines of a GPU. `queues`: "stream", a hardware queue for each stream (Hyper-Q, since Kepler), or "engine", one
    for all streams in front of each engine (Fermi): there an operation that must wait holds up all that were issued
    behind it. `issue_ms`: what each call costs the host.
    """

    name: str
    copy_engines: int = 2
    decoders: int = 1
    queues: str = "stream"
    issue_ms: float = 0.0

    def __post_init__(self) -> None:
        if self.copy_engines not in (1, 2):
            raise ValueError(
                f"{self.name}: copy_engines is 1 (both directions) or 2 (one each), not {self.copy_engines}"
            )
        if self.queues not in ("stream", "engine"):
            raise ValueError(f"{self.name}: queues is 'stream' or 'engine', not {self.queues!r}")
        if self.decoders < 1 or self.issue_ms < 0:
            raise ValueError(f"{self.name}: needs a decoder and issue_ms of 0 or more")

    def engine(self, operation: Operation) -> str | None:
        """Where an operation runs: "H2D", "D2H" or "copy", "SMs", "NVDEC", "host"; None for records and waits."""
        if operation.kind in ("h2d", "d2h"):
            return operation.kind.upper() if self.copy_engines == 2 else "copy"
        return {"kernel": "SMs", "decode": "NVDEC", "host": "host", "sync": "host"}.get(operation.kind)


TODAY = Machine("today's GPU")
ONE_COPY_ENGINE = Machine("one copy engine", copy_engines=1)
FERMI = Machine("Fermi", copy_engines=2, queues="engine")
"""Tesla C2050, 2010: two copy engines, a queue for each engine. GeForce cards of the time had one copy engine.
S. Rennich, CUDA C/C++ Streams and Concurrency, NVIDIA, 2011."""


@dataclass(frozen=True)
class Span:
    """When one operation ran: virtual milliseconds since the host began."""

    operation: Operation
    engine: str | None
    issued: float
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """The spans of a schedule, in the order of issue. `source`: whose times these are."""

    spans: tuple[Span, ...]
    source: str = "virtual time"

    @property
    def end(self) -> float:
        """Milliseconds until the last operation ended."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines that worked, in the order of their first work."""
        used = [s for s in self.spans if s.engine and s.operation.kind != "sync"]
        return tuple(dict.fromkeys(str(s.engine) for s in sorted(used, key=lambda s: s.start)))

    def of(self, name: str) -> Span:
        """The span of the first operation of that name. KeyError names those there are."""
        for span in self.spans:
            if span.operation.name == name:
                return span
        raise KeyError(f"no operation '{name}'; there are {', '.join(s.operation.name for s in self.spans)}")

    def busy(self, engine: str) -> float:
        """Milliseconds in which the engine had work."""
        return sum(end - start for start, end in self._intervals(engine))

    def overlap(self, one: str, other: str) -> float:
        """Milliseconds in which both engines had work."""
        pairs = ((a, b) for a in self._intervals(one) for b in self._intervals(other))
        return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)

    def _intervals(self, engine: str) -> list[list[float]]:
        """Disjoint intervals of work of an engine."""
        joined: list[list[float]] = []
        of_engine = (s for s in self.spans if s.engine == engine and s.operation.kind != "sync" and s.end > s.start)
        for span in sorted(of_engine, key=lambda s: s.start):
            if joined and span.start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], span.end)
            else:
                joined.append([span.start, span.end])
        return joined

    def __str__(self) -> str:
        rows = [s for s in self.spans if s.engine]
        width = max((len(s.operation.name) for s in rows), default=0)
        lines = [
            f"{s.operation.name:{width}}  {s.engine or '':5} {_where(s.operation):15} {s.start:9.3f} {s.end:9.3f}"
            for s in rows
        ]
        return "\n".join([f"{self.end:g} ms in all ({self.source})", *lines])


def _where(operation: Operation) -> str:
    return "" if operation.kind in ON_HOST else f"stream {operation.stream}"


def simulate(schedule: Schedule, machine: Machine = TODAY) -> Timeline:
    """When each operation would run on the machine, in virtual time: no GPU's time, but what the rules allow.

    An engine takes operations in the order in which they became ready, and of those the first issued. A race is run
    as any other schedule; `races` finds it.
    """
    return _Simulation(schedule, machine).run()


class _Simulation:
    def __init__(self, schedule: Schedule, machine: Machine) -> None:
        self.operations, self.machine = schedule.operations, machine
        self.before = dependencies(schedule)
        n = len(self.operations)
        self.issued, self.start, self.end = [-1.0] * n, [-1.0] * n, [-1.0] * n
        self.ready = [-1.0] * n
        self.engine = [machine.engine(o) for o in self.operations]
        self.free = {name: 1.0 for name in self.engine if name} | {"NVDEC": float(machine.decoders)}
        self.waiting: list[int] = []  # issued, not started, in the order of issue
        self.running: list[int] = []
        self.now, self.next, self.host_free = 0.0, 0, 0.0
        self.host_waits_for: list[int] = []

    def run(self) -> Timeline:
        while True:
            while self._finish() or self._issue() or self._dispatch():
                pass
            times = [self.end[i] for i in self.running]
            if self.next < len(self.operations) and self.host_free > self.now:
                times.append(self.host_free)
            if not times:
                break
            self.now = min(times)
        assert not self.waiting, "an operation waits for earlier ones only, so none is left over"
        return Timeline(
            tuple(
                Span(o, self.engine[o.index], self.issued[o.index], self.start[o.index], self.end[o.index])
                for o in self.operations
            )
        )

    def _done(self, i: int) -> bool:
        return self.end[i] >= 0 and self.end[i] <= self.now and i not in self.running

    def _finish(self) -> bool:
        ended = [i for i in self.running if self.end[i] <= self.now]
        for i in ended:
            self.running.remove(i)
            self.free[self._engine(i)] += self.operations[i].share
        return bool(ended)

    def _engine(self, i: int) -> str:
        name = self.engine[i]
        assert name is not None
        return name

    def _issue(self) -> bool:
        """The host's next call, if the host is free."""
        if self.next == len(self.operations) or self.host_free > self.now:
            return False
        if any(not self._done(i) for i in self.host_waits_for):
            return False
        o = self.operations[self.next]
        i = o.index
        if o.kind == "sync":
            if self.issued[i] < 0:
                self.issued[i] = self.start[i] = self.now
            if any(not self._done(j) for j in self.before[i]):
                return False
            self.end[i] = self.now
        else:
            self.issued[i] = self.now
            self.host_waits_for = []
            if o.kind == "host":
                self.start[i], self.end[i] = self.now, self.now + o.ms
                self.host_free = self.end[i]
            else:
                self.waiting.append(i)
                self.host_free = self.now + self.machine.issue_ms
                if o.kind in ("h2d", "d2h") and not o.pinned:
                    self.host_waits_for = [i]
        self.next += 1
        return True

    def _dispatch(self) -> bool:
        """Start one operation that may start now."""
        for i in self.waiting:
            if self.ready[i] < 0 and all(self._done(j) for j in self.before[i]):
                self.ready[i] = self.now
        for i in self._candidates():
            o = self.operations[i]
            self.start[i], self.end[i] = self.now, self.now + o.ms
            self.waiting.remove(i)
            if self.engine[i] is not None:
                self.free[self._engine(i)] -= o.share
                self.running.append(i)
            return True
        return False

    def _candidates(self) -> Iterator[int]:
        """The operations that can start: the first of each engine's queue, if it is ready and there is room."""
        queues: dict[str, list[int]] = {}
        for i in self.waiting:
            name = self.engine[i]
            if name is None:
                if self.ready[i] >= 0:
                    yield i
            elif self.machine.queues == "engine" or self.ready[i] >= 0:
                queues.setdefault(name, []).append(i)
        for name, queue in queues.items():
            first = queue[0] if self.machine.queues == "engine" else min(queue, key=lambda i: (self.ready[i], i))
            if self.ready[first] >= 0 and self.free[name] >= self.operations[first].share - 1e-9:
                yield first
