"""A collective as a list of sends, and the check that the list does what the collective promises.

k ranks, one buffer each, cut into S slices. A send is one message: at `step`, `source` sends `count` slices from
`slice` on to `destination`, which overwrites its own with them or adds them to its own (`reduce`). All messages of a
step read what their sources held when the step began. What the collectives promise, as NCCL and MPI define them:

    broadcast       every rank ends with the root's buffer
    reduce          the root ends with the sum of all buffers
    all-reduce      every rank ends with that sum
    reduce-scatter  rank r ends with slices r·S/k to (r+1)·S/k − 1 of that sum
    all-gather      rank r begins with slices r·S/k to (r+1)·S/k − 1, every rank ends with all

`check_schedule` follows which ranks' data is in each slice of each rank, one bit per rank, and never looks at a number.
"""

import contextlib
import operator
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

COLLECTIVES = ("broadcast", "reduce-scatter", "all-gather", "all-reduce", "reduce")
ADDING = ("reduce-scatter", "all-reduce", "reduce")
SCATTERED = ("reduce-scatter", "all-gather")  # rank r owns the r-th of k equal parts

Holdings = list[list[int]]  # [rank][slice]: bit r is set if rank r's data is in it; 0 = nothing of worth yet


class ScheduleError(ValueError):
    """A schedule that would not do what its collective promises; says which message, and what to do."""


@dataclass(frozen=True, order=True)
class Send:
    """One message. `count`: how many slices, from `slice` on, it carries; they lie side by side in the buffer."""

    step: int
    source: int
    destination: int
    slice: int
    reduce: bool = False
    count: int = 1

    @property
    def slices(self) -> range:
        """Return the slices that the message carries."""
        return range(self.slice, self.slice + self.count)

    def __str__(self) -> str:
        carried = f"slice {self.slice}" if self.count == 1 else f"slices {self.slice} to {self.slice + self.count - 1}"
        return f"step {self.step}: rank {self.source} to rank {self.destination}, {carried}"


@dataclass(frozen=True)
class Schedule:
    """Messages of one collective over `ranks` buffers of `slices` slices. `sends` may be any iterable; it is sorted."""

    collective: str
    ranks: int
    slices: int
    sends: tuple[Send, ...]
    root: int = 0

    def __post_init__(self) -> None:
        sends = tuple(self.sends)
        for send in sends:
            if not isinstance(send, Send):
                raise TypeError(f"{send!r} is no Send; write Send(step, source, destination, slice, reduce)")
        with contextlib.suppress(TypeError):  # a step or rank that is no number: check_schedule names it
            sends = tuple(sorted(sends))
        object.__setattr__(self, "sends", sends)

    @property
    def steps(self) -> int:
        """Return the last step + 1; 0 without sends."""
        return self.sends[-1].step + 1 if self.sends else 0

    def by_step(self) -> list[list[Send]]:
        """Return the sends of step 0, of step 1, and so on; a step may be empty."""
        found: list[list[Send]] = [[] for _ in range(self.steps)]
        for send in self.sends:
            found[send.step].append(send)
        return found

    def elements(self, send: Send, n: int) -> slice:
        """Return which of a buffer's n elements the send carries. Slice i begins at element i·n // S."""
        return slice(send.slice * n // self.slices, (send.slice + send.count) * n // self.slices)

    def owned(self, rank: int) -> range:
        """Return the slices that `rank` ends a reduce-scatter or begins an all-gather with."""
        part = self.slices // self.ranks
        return range(rank * part, (rank + 1) * part)


def check_schedule(schedule: Schedule, links: Collection[tuple[int, int]] | None = None) -> None:
    """Raise ScheduleError unless the schedule does what its collective promises, by the rules of this module:

    - ranks and slices exist, and (source, destination) is one of `links` (all, if None);
    - one message per directed link and step, one write per slice of a destination and step;
    - nobody sends a slice that it does not hold yet;
    - in a sum each rank's data arrives once, and none is missing in the end.
    """
    _check_sizes(schedule)
    for send in schedule.sends:
        _check_fields(schedule, send)
        if links is not None and (send.source, send.destination) not in links:
            raise ScheduleError(
                f"{send}: there is no link from rank {send.source} to rank {send.destination}; "
                "send along the links of the topology"
            )
    *_, held = holdings(schedule)
    _check_end(schedule, held)


def holdings(schedule: Schedule) -> Iterator[Holdings]:
    """Yield whose data is in each slice of each rank: before the first step, and after every step. Raise ScheduleError.

    The lists are the same ones each time, changed in place.
    """
    held = _begin(schedule)
    yield held
    for sends in schedule.by_step():
        _check_step(sends)
        for send, read in [(send, [held[send.source][i] for i in send.slices]) for send in sends]:
            for i, bits in zip(send.slices, read, strict=True):
                held[send.destination][i] = _arrived(schedule, send, i, bits, held[send.destination][i])
        yield held


def ranks_of(bits: int) -> list[int]:
    """Return the ranks whose bits are set."""
    return [rank for rank in range(bits.bit_length()) if bits >> rank & 1]


def _begin(schedule: Schedule) -> Holdings:
    if schedule.collective in ADDING:
        return [[1 << rank] * schedule.slices for rank in range(schedule.ranks)]
    held = [[0] * schedule.slices for _ in range(schedule.ranks)]
    for rank in range(schedule.ranks):
        if schedule.collective == "all-gather":
            for i in schedule.owned(rank):
                held[rank][i] = 1 << rank
        elif rank == schedule.root:
            held[rank] = [1 << rank] * schedule.slices
    return held


def _arrived(schedule: Schedule, send: Send, i: int, bits: int, own: int) -> int:
    """Return what the destination holds in slice i after the message."""
    if not bits:
        raise ScheduleError(
            f"{send}: rank {send.source} does not hold slice {i} when the step begins; "
            "let it receive the slice in an earlier step"
        )
    if not send.reduce:
        return bits
    if schedule.collective not in ADDING:
        raise ScheduleError(f"{send}: a {schedule.collective} adds nothing; send it with reduce=False")
    if twice := ranks_of(bits & own):
        raise ScheduleError(
            f"{send}: the data of {_names(twice)} would be added twice to slice {i} of rank {send.destination}; "
            "send a sum on once only, and overwrite where it is complete (reduce=False)"
        )
    return bits | own


def _check_step(sends: Iterable[Send]) -> None:
    links: dict[tuple[int, int], Send] = {}
    writes: dict[tuple[int, int], Send] = {}
    for send in sends:
        link = send.source, send.destination
        if link in links:
            raise ScheduleError(
                f"{send}: in this step the link from rank {send.source} to rank {send.destination} already carries "
                f"slice {links[link].slice}; a link carries one message per step, move one of them to another step"
            )
        links[link] = send
        for i in send.slices:
            if (other := writes.get((send.destination, i))) is not None:
                raise ScheduleError(
                    f"{send}: in this step rank {other.source} also writes slice {i} of rank {send.destination}; "
                    "move one of them to another step"
                )
            writes[send.destination, i] = send


def _check_end(schedule: Schedule, held: Holdings) -> None:
    k, collective = schedule.ranks, schedule.collective
    everybody = (1 << k) - 1
    for rank in range(k):
        if collective == "reduce" and rank != schedule.root:
            continue
        for i in schedule.owned(rank) if collective == "reduce-scatter" else range(schedule.slices):
            if collective in ADDING:
                wanted = everybody
            else:
                wanted = 1 << (i * k // schedule.slices if collective == "all-gather" else schedule.root)
            if missing := ranks_of(wanted & ~held[rank][i]):
                complete = [other for other in range(k) if held[other][i] == everybody]
                raise ScheduleError(
                    f"after step {schedule.steps - 1}, the last, slice {i} of rank {rank} lacks the data of "
                    f"{_names(missing)}; {_advice(collective, rank, complete)}"
                )


def _advice(collective: str, rank: int, complete: Sequence[int]) -> str:
    if collective == "reduce-scatter" and complete:
        return (
            f"its sum is complete at rank {complete[0]}, but rank {rank} owns it: begin and end its journey elsewhere"
        )
    if collective in ADDING:
        return f"each rank's data must be added on the way to rank {rank}, and not be overwritten"
    return f"send the slice to rank {rank}"


def _check_sizes(schedule: Schedule) -> None:
    if schedule.collective not in COLLECTIVES:
        raise ScheduleError(f"there is no collective {schedule.collective!r}; choose one of {', '.join(COLLECTIVES)}")
    for name, value in (("ranks", schedule.ranks), ("slices", schedule.slices)):
        if not _whole(value) or value < 1:
            raise ScheduleError(f"a schedule has at least one of {name}, not {value!r}")
    if not _whole(schedule.root) or not 0 <= schedule.root < schedule.ranks:
        raise ScheduleError(f"root {schedule.root!r} is no rank; ranks are 0 to {schedule.ranks - 1}")
    if schedule.collective in SCATTERED and schedule.slices % schedule.ranks:
        raise ScheduleError(
            f"a {schedule.collective} over {schedule.ranks} ranks needs as many slices for each; {schedule.slices} "
            f"is no multiple of {schedule.ranks}"
        )


def _check_fields(schedule: Schedule, send: Send) -> None:
    for name in ("step", "source", "destination", "slice", "count"):
        if not _whole(getattr(send, name)):
            raise ScheduleError(f"{send}: {name} must be a whole number, not {getattr(send, name)!r}")
    if send.step < 0:
        raise ScheduleError(f"{send}: steps begin at 0")
    for rank in (send.source, send.destination):
        if not 0 <= rank < schedule.ranks:
            raise ScheduleError(f"{send}: there is no rank {rank}; ranks are 0 to {schedule.ranks - 1}")
    if send.source == send.destination:
        raise ScheduleError(f"{send}: a rank sends to another rank; leave this message out")
    if send.count < 1:
        raise ScheduleError(f"{send}: a message carries at least one slice, not {send.count}")
    if send.slice < 0 or send.slice + send.count > schedule.slices:
        raise ScheduleError(f"{send}: there is no such slice; slices are 0 to {schedule.slices - 1}")


def _whole(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _names(ranks: Collection[int]) -> str:
    shown = ", ".join(map(str, list(ranks)[:8])) + (", ..." if len(ranks) > 8 else "")
    return ("rank " if len(ranks) == 1 else "ranks ") + shown
