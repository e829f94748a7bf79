"""A schedule's messages as copies and additions on streams, and which must wait for which.

A link has a stream, on the source's side, on which its messages go one after another. A message that adds, or whose
place is still to be read in the same step, goes to a scratch buffer of the destination first; a second stream, on the
destination's side, then adds or puts it in place. Operations of different streams are ordered only where one needs what
another has written, or would overwrite what another still reads: no step waits for all of the step before.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from kernels.collectives.schedule import Schedule, Send

COPY, STAGE, ADD, PLACE = "copy", "stage", "add", "place"


class Lane(NamedTuple):
    """A stream: `rank` is where it works; copies of a link are queued at its source, additions at its destination."""

    rank: int
    source: int
    destination: int


@dataclass(frozen=True)
class LaneOperation:
    """`kind`: COPY (source's buffer to destination's), STAGE (to the destination's scratch), ADD or PLACE (scratch to
    the destination's buffer). `waits`: numbers of operations on other lanes that must have ended before.
    """

    number: int
    kind: str
    send: Send
    lane: Lane
    waits: tuple[int, ...]


Place = tuple[int, int]  # rank and slice


class _Plan:
    def __init__(self) -> None:
        self.operations: list[LaneOperation] = []
        self.written: dict[Place, int] = {}  # the last operation that wrote there
        self.read: dict[Place, list[int]] = defaultdict(list)  # those that read since
        self.scratch: dict[Place, int] = {}  # the last operation that emptied the scratch there
        self._waited: dict[Lane, dict[Lane, int]] = defaultdict(dict)

    def add(self, kind: str, send: Send, lane: Lane, needed: set[int]) -> int:
        """Append an operation that needs others; leave out the waits that its lane has made already."""
        latest: dict[Lane, int] = {}
        for number in needed:
            other = self.operations[number].lane
            latest[other] = max(latest.get(other, -1), number)
        waited = self._waited[lane]
        waits = sorted(n for other, n in latest.items() if other != lane and waited.get(other, -1) < n)
        waited.update({self.operations[number].lane: number for number in waits})
        self.operations.append(LaneOperation(len(self.operations), kind, send, lane, tuple(waits)))
        return self.operations[-1].number

    def writers(self, rank: int, send: Send) -> set[int]:
        return {self.written[rank, i] for i in send.slices if (rank, i) in self.written}

    def readers(self, rank: int, send: Send) -> set[int]:
        return {number for i in send.slices for number in self.read[rank, i]}


def operations(schedule: Schedule) -> list[LaneOperation]:
    """Return the operations of a checked schedule, in an order in which they may be queued."""
    plan = _Plan()
    for sends in schedule.by_step():
        sources = {(send.source, i) for send in sends for i in send.slices}
        staged = [send for send in sends if send.reduce or any((send.destination, i) in sources for i in send.slices)]
        copied = {send: _copy(plan, send, send in staged) for send in sends}
        for send, number in copied.items():  # before this step's writes are noted: all read what was there before
            for i in send.slices:
                plan.read[send.source, i].append(number)
        for send in staged:
            copied[send] = _apply(plan, send, copied[send])
        for send, number in copied.items():
            for i in send.slices:
                place = send.destination, i
                plan.written[place] = number
                # Who writes next waits for this write, and so for the reads that it has waited for.
                plan.read[place] = []
    return plan.operations


def _copy(plan: _Plan, send: Send, staged: bool) -> int:
    lane = Lane(send.source, send.source, send.destination)
    needed = plan.writers(send.source, send)
    if staged:
        needed |= {plan.scratch[send.destination, i] for i in send.slices if (send.destination, i) in plan.scratch}
    else:
        needed |= plan.writers(send.destination, send) | plan.readers(send.destination, send)
    return plan.add(STAGE if staged else COPY, send, lane, needed)


def _apply(plan: _Plan, send: Send, staged: int) -> int:
    lane = Lane(send.destination, send.source, send.destination)
    needed = {staged} | plan.writers(send.destination, send) | plan.readers(send.destination, send)
    number = plan.add(ADD if send.reduce else PLACE, send, lane, needed)
    for i in send.slices:
        plan.scratch[send.destination, i] = number
    return number
