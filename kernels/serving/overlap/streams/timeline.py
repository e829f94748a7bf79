"""When the operations of a schedule would run on a GPU's engines, in virtual milliseconds.

One copy engine per direction (a GPU has at least that today; its property asyncEngineCount tells), SMs that kernels
share, NVDEC, and the host thread. No time here is a GPU's: it follows from the durations that the schedule states and
from the order that CUDA's rules leave.
"""

import heapq
from dataclasses import dataclass, replace

from kernels.serving.overlap.streams.schedule import ON_HOST, Operation, Schedule, dependencies
from kernels.serving.utilisation.traces import union


@dataclass(frozen=True)
class Machine:
    """Engines of a GPU, with a hardware queue for each stream. `issue_ms`: what each call costs the host."""

    name: str
    copy_engines: int = 2
    decoders: int = 1
    issue_ms: float = 0.0

    def __post_init__(self) -> None:
        if self.copy_engines not in (1, 2):
            raise ValueError(
                f"{self.name}: copy_engines is 1 (both directions) or 2 (one each), not {self.copy_engines}"
            )
        if self.decoders < 1 or self.issue_ms < 0:
            raise ValueError(f"{self.name}: needs a decoder and issue_ms of 0 or more")

    def engine(self, operation: Operation) -> str | None:
        """Return where an operation runs: "H2D", "D2H" or "copy", "SMs", "NVDEC", "host"; None: records, waits."""
        if operation.kind in ("h2d", "d2h"):
            return operation.kind.upper() if self.copy_engines == 2 else "copy"
        return {"kernel": "SMs", "decode": "NVDEC", "host": "host", "sync": "host"}.get(operation.kind)


COPY_ENGINES = ("H2D", "D2H", "copy")
TODAY = Machine("today's GPU")
ONE_COPY_ENGINE = Machine("one copy engine", copy_engines=1)


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
        """Return milliseconds until the last operation ended."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the engines that worked, in the order of their first work."""
        used = [s for s in self.spans if s.engine and s.operation.kind != "sync"]
        return tuple(dict.fromkeys(str(s.engine) for s in sorted(used, key=lambda s: s.start)))

    def of(self, name: str) -> Span:
        """Return the span of the first operation of that name. KeyError names those there are."""
        for span in self.spans:
            if span.operation.name == name:
                return span
        raise KeyError(f"no operation '{name}'; there are {', '.join(s.operation.name for s in self.spans)}")

    def busy(self, engine: str) -> float:
        """Return the milliseconds in which the engine had work."""
        return sum(end - start for start, end in self._intervals(engine))

    def overlap(self, one: str, other: str) -> float:
        """Return the milliseconds in which both engines had work."""
        pairs = ((a, b) for a in self._intervals(one) for b in self._intervals(other))
        return sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a, b in pairs)

    def copies_in_turns(self) -> "Timeline":
        """Return the times by events, with each copy's start put off until its engine had ended the copy before.

        An event in front of a copy says when the copy could begin, not when its engine took it up; an engine does one
        copy at a time, so that its copies lie in the order of their ends.
        """
        moved, last = {}, dict.fromkeys(COPY_ENGINES, 0.0)
        for span in sorted(self.spans, key=lambda s: (s.end, s.start)):
            if span.engine in last:
                moved[span.operation.index] = max(span.start, last[span.engine])
                last[span.engine] = span.end
        spans = (replace(s, start=moved.get(s.operation.index, s.start)) for s in self.spans)
        return Timeline(tuple(spans), self.source)

    def _intervals(self, engine: str) -> list[tuple[float, float]]:
        """List the disjoint intervals of work of an engine."""
        return union(s for s in self.spans if s.engine == engine and s.operation.kind != "sync" and s.end > s.start)

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
    """Return when each operation would run on the machine, in virtual time: no GPU's time, but what the rules allow.

    An engine takes operations in the order in which they became ready, and of those the first issued; a copy engine
    goes on with the stream that it served last while that has a copy ready (seen on an H100, 2026-11-23: with 2 streams
    issued breadth first, all copies of one stream come before those of the other). A race is run as any other
    schedule; `races` finds it.
    """
    return _Simulation(schedule, machine).run()


class _Simulation:
    """Time goes from event to event: an operation ends, or the host is free for its next call.

    `queues` holds, for each engine, the operations that are ready, as (time of readiness, index).
    """

    def __init__(self, schedule: Schedule, machine: Machine) -> None:
        self.operations, self.machine = schedule.operations, machine
        self.before = dependencies(schedule)
        n = len(self.operations)
        self.after: list[list[int]] = [[] for _ in range(n)]
        for i, before in enumerate(self.before):
            for j in set(before):
                self.after[j].append(i)
        self.missing = [len(set(before)) for before in self.before]  # operations that are not done yet
        self.issued, self.start, self.end = [-1.0] * n, [-1.0] * n, [-1.0] * n
        self.engine = [machine.engine(o) for o in self.operations]
        self.free = {name: 1.0 for name in self.engine if name} | {"NVDEC": float(machine.decoders)}
        self.queues: dict[str, list[tuple[float, int]]] = {name: [] for name in self.free}
        self.running: list[tuple[float, int]] = []
        self.served: dict[str, str | int | None] = {}  # the stream of the last operation, by engine
        self.done = [False] * n
        self.now, self.next, self.host_free = 0.0, 0, 0.0
        self.host_waits_for: int | None = None

    def run(self) -> Timeline:
        while True:
            while self._finish() or self._issue() or self._dispatch():
                pass
            times = [self.running[0][0]] if self.running else []
            if self.next < len(self.operations) and self.host_free > self.now:
                times.append(self.host_free)
            if not times:
                break
            self.now = min(times)
        assert all(self.done), "an operation waits for earlier ones only, so none is left over"
        spans = zip(self.operations, self.engine, self.issued, self.start, self.end, strict=True)
        return Timeline(tuple(Span(*span) for span in spans))

    def _finish(self) -> bool:
        """Take the operations that end now off their engines."""
        if not self.running or self.running[0][0] > self.now:
            return False
        while self.running and self.running[0][0] <= self.now:
            _, i = heapq.heappop(self.running)
            self.free[self.engine[i]] += self.operations[i].share
            self._settle(i)
        return True

    def _settle(self, i: int) -> None:
        """Settle an operation: those that waited for it alone are ready. Records and waits are done at once."""
        settled = [i]
        while settled:
            j = settled.pop()
            self.done[j] = True
            for k in self.after[j]:
                self.missing[k] -= 1
                if not self.missing[k] and self.issued[k] >= 0 and self._ready(k):
                    settled.append(k)

    def _ready(self, i: int) -> bool:
        """Queue an operation that waits for no other. True if it needs no engine and so is done."""
        if self.operations[i].kind == "sync":
            return False  # the host looks for itself
        if self.engine[i] is None:
            self.start[i] = self.end[i] = self.now
            return True
        self.queues[self.engine[i]].append((self.now, i))
        return False

    def _issue(self) -> bool:
        """Issue the host's next call, if the host is free."""
        if self.next == len(self.operations) or self.host_free > self.now:
            return False
        if self.host_waits_for is not None and not self.done[self.host_waits_for]:
            return False
        i, o = self.next, self.operations[self.next]
        if self.issued[i] < 0:
            self.issued[i] = self.now
        if o.kind == "sync":
            self.start[i] = self.issued[i]
            if self.missing[i]:
                return False
            self.end[i], self.done[i] = self.now, True
        elif o.kind == "host":
            self.start[i], self.end[i], self.done[i] = self.now, self.now + o.ms, True
            self.host_free = self.end[i]
        else:
            self._queue(o)
        self.next += 1
        return True

    def _queue(self, o: Operation) -> None:
        self.host_free = self.now + self.machine.issue_ms
        self.host_waits_for = o.index if o.kind in ("h2d", "d2h") and not o.pinned else None
        if not self.missing[o.index] and self._ready(o.index):
            self._settle(o.index)

    def _dispatch(self) -> bool:
        """Start one operation that may start now: the first of an engine's queue, if there is room for it."""
        for name, queue in self.queues.items():
            if not queue:
                continue
            first = self._first(name, queue)
            i = first[1]
            if self.free[name] >= self.operations[i].share - 1e-9:
                queue.remove(first)
                self.served[name] = self.operations[i].stream
                self.start[i], self.end[i] = self.now, self.now + self.operations[i].ms
                self.free[name] -= self.operations[i].share
                heapq.heappush(self.running, (self.end[i], i))
                return True
        return False

    def _first(self, name: str, queue: list[tuple[float, int]]) -> tuple[float, int]:
        """Choose what the engine takes next."""
        if name in COPY_ENGINES:
            same = [entry for entry in queue if self.operations[entry[1]].stream == self.served.get(name)]
            return min(same or queue)
        return min(queue)
