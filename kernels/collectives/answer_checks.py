"""Checks of a learner's answers in the exercise: a schedule written as tuples, and programs of ranks.

They say what is wrong with an answer, as `warplab.checks` does, and hold no schedule of their own.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kernels.collectives.programs import ProgramLine, find_deadlock
from kernels.collectives.schedule import ADDING, Schedule, ScheduleError, Send, check_schedule
from warplab.checks import CheckFailed, returned
from warplab.checks.errors import whole, wrong_type

_FIELDS = ("step", "source", "destination", "slice")


def ring_links(ring: Sequence[int]) -> set[tuple[int, int]]:
    """Return the links of a one-way ring, from each rank to the next in `ring`, and from the last to the first."""
    return {(rank, ring[(place + 1) % len(ring)]) for place, rank in enumerate(ring)}


def check_messages(
    name: str, got: Any, collective: str, ring: Sequence[int], slices: int, root: int = 0, *, steps: int
) -> None:
    """Check a schedule on a one-way ring; raise CheckFailed unless it is right, in `steps` steps, nothing sent in vain.

    `name`: of the learner's function; `got`: what it returned, a list of (step, source, destination, slice), for an
    all-reduce (step, source, destination, slice, add). `ring`: the ranks 0 to k − 1 in the order of the links.
    """
    where = f"ring = {list(ring)}, slices = {slices}" + (f", root = {root}" if collective == "broadcast" else "")
    try:
        sends = _sends(name, got, collective, len(ring), slices, most=2 * steps + 100)
        schedule = Schedule(collective, len(ring), slices, tuple(sends), root)
        _right(name, schedule, ring_links(ring))
        needed = (len(ring) - 1) * slices * (2 if collective == "all-reduce" else 1)
        _limit(name, "messages", len(sends), needed, "which messages bring a rank nothing that it needs")
        _limit(name, "steps", schedule.steps, steps, "which links idle in which steps: print the messages by step")
    except CheckFailed as failed:
        raise failed.at(where) from None


def check_programs(name: str, got: Any, collective: str, ring: Sequence[int], slices: int, *, rounds: int) -> None:
    """Check the blocking programs of all ranks; raise CheckFailed unless they end in `rounds` rounds, and are right.

    `got`: a list with the program of rank 0, of rank 1 and so on, each a list of (what, peer, slice), what = "send" or
    "receive". In a round each rank does at most one of them.
    """
    k = len(ring)
    try:
        operations = _operations(name, got, k, slices, collective in ADDING)
        try:
            stopped = find_deadlock(operations)
        except ScheduleError as error:
            raise _failed(name, error) from None
        if stopped is not None:
            # The last line of its text says what to do, which is the learner's to find out.
            raise CheckFailed(
                f"{name}: the programs stop for ever.",
                got="\n".join(str(stopped).splitlines()[:-1]),
                look_at="what each of these ranks would have to do first, so that another one can go on",
                kind="endless",
            )
        sends = in_rounds(operations)
        schedule = Schedule(collective, k, slices, tuple(sends))
        _right(name, schedule, ring_links(ring))
        _limit(name, "rounds", schedule.steps, rounds, "which ranks wait for which, round by round")
    except CheckFailed as failed:
        raise failed.at(f"ring = {list(ring)}") from None


def in_rounds(programs: Sequence[Sequence[ProgramLine]]) -> list[Send]:
    """Return the messages of blocking programs that do not deadlock, the round in which each is sent as its step.

    A message is sent in the first round in which its sender and its receiver have both come to it.
    """
    line, sends, round_number = [0] * len(programs), [], 0
    while any(at < len(operations) for at, operations in zip(line, programs, strict=True)):
        now = [operations[at] if at < len(operations) else None for at, operations in zip(line, programs, strict=True)]
        met = []
        for rank, mine in enumerate(now):
            if mine is not None and mine.action == "send":
                theirs = now[mine.peer]
                if theirs is not None and (theirs.action, theirs.peer) == ("receive", rank):
                    met.append(Send(round_number, rank, mine.peer, mine.slice, mine.reduce))
        if not met:
            raise ValueError("the programs deadlock; find_deadlock says where")
        for send in met:
            line[send.source] += 1
            line[send.destination] += 1
        sends += met
        round_number += 1
    return sends


# -- what a learner returned -----------------------------------------------------------------------------------


def _listed(name: str, got: Any) -> list[Any]:
    if got is None:
        raise CheckFailed(f"{name} is not written yet: it returns nothing.", kind="not written")
    if not isinstance(got, list | tuple):
        raise wrong_type(f"{name} returns the wrong type.", expected="a list", got=type(got).__name__)
    return list(got)


def _sends(name: str, got: Any, collective: str, ranks: int, slices: int, most: int) -> list[Send]:
    """Return the messages as sends, with fields in range. `most`: steps that no schedule here needs."""
    fields = (*_FIELDS, "add") if collective == "all-reduce" else _FIELDS
    sends = []
    for number, message in enumerate(_listed(name, got)):
        numbers = tuple(message)[: len(_FIELDS)] if isinstance(message, list | tuple) else ()
        flags = tuple(message)[len(_FIELDS) :] if isinstance(message, list | tuple) else ()
        right = len(numbers) == len(_FIELDS) and all(map(whole, numbers)) and len(flags) == len(fields) - len(_FIELDS)
        if not right or not all(isinstance(flag, bool | np.bool_) for flag in flags):
            raise wrong_type(
                f"{name}: message {number} is not one.",
                expected=f"({', '.join(fields)})" + (", add True or False" if flags else ""),
                got=repr(message)[:200],
            )
        step, source, destination, part = map(int, numbers)
        for what, value, end in (("rank", source, ranks), ("rank", destination, ranks), ("slice", part, slices)):
            if not 0 <= value < end:
                raise CheckFailed(
                    f"{name}: message {number} names a {what} that does not exist.",
                    expected=f"a {what} from 0 to {end - 1}",
                    got=str((step, source, destination, part)),
                )
        if not 0 <= step < most:
            raise CheckFailed(
                f"{name}: message {number} is in {'a step before the first' if step < 0 else 'too late a step'}.",
                expected="steps that begin at 0, and no more than needed",
                got=f"step {step}",
            )
        sends.append(Send(step, source, destination, part, bool(flags[0]) if flags else collective in ADDING))
    if not sends:
        raise CheckFailed(f"{name} returns an empty list.", expected="messages", got="none", kind="not written")
    return sends


def _operations(name: str, got: Any, ranks: int, slices: int, adding: bool) -> list[list[ProgramLine]]:
    programs = _listed(name, got)
    if len(programs) != ranks:
        raise CheckFailed(
            f"{name} returns the wrong number of programs.", expected=f"{ranks}, one per rank", got=str(len(programs))
        )
    found: list[list[ProgramLine]] = []
    for rank, lines in enumerate(programs):
        found.append([])
        for line in lines if isinstance(lines, list | tuple) else [lines]:
            parts = tuple(line) if isinstance(line, list | tuple) else ()
            right = len(parts) == 3 and type(parts[0]) in (str, np.str_) and all(map(whole, parts[1:]))
            right = right and parts[0] in ("send", "receive")
            if not right or not 0 <= parts[1] < ranks or parts[1] == rank or not 0 <= parts[2] < slices:
                raise wrong_type(
                    f"{name}: rank {rank} has a line that is none.",
                    expected='("send" or "receive", another rank, slice)',
                    got=repr(line)[:200],
                )
            found[-1].append(ProgramLine(parts[0], int(parts[1]), int(parts[2]), adding))
    if not any(found):
        raise CheckFailed(f"{name} returns empty programs.", kind="not written")
    return found


# -- what is wrong with it -------------------------------------------------------------------------------------


def _right(name: str, schedule: Schedule, links: Collection[tuple[int, int]]) -> None:
    try:
        check_schedule(schedule, links)
    except ScheduleError as error:
        raise _failed(name, error) from None


def _failed(name: str, error: ScheduleError) -> CheckFailed:
    """Return the error of a schedule, its advice apart."""
    problem, _, advice = str(error).rpartition("; ")
    return CheckFailed(f"{name}: {problem or advice}.", look_at=advice if problem else "")


def _limit(name: str, what: str, got: int, most: int, look_at: str) -> None:
    if got > most:
        problem = f"too many {what}"
        raise CheckFailed(
            f"{name}: {problem}.", expected=f"{most}", got=f"{got}", look_at=look_at, kind="limit", missed=problem
        )


def check_never_go_on(got: Any, right: Sequence[int], waits: Sequence[int | None]) -> None:
    """Raise CheckFailed unless `got`, of stuck(waits), lists the ranks `right`; do not say how many these are."""
    where, problem = f"waits = {list(waits)}", "stuck returns the wrong type."
    if got is not None and not isinstance(got, list | tuple):
        raise wrong_type(problem, expected="a list", got=type(got).__name__, where=where)
    named = [rank for rank in got or () if whole(rank)]
    if got is not None and (left_out := [rank for rank in right if rank not in named]):
        raise CheckFailed(f"stuck leaves out rank {left_out[0]}, which never goes on.", got=repr(got), where=where)
    if more := [rank for rank in named if rank not in right]:
        raise CheckFailed(f"stuck names rank {more[0]}, which goes on.", got=repr(got), where=where)
    if got and not named:
        raise wrong_type(problem, expected="a list of ranks", got=repr(got), where=where)
    if len(named) > len(right):
        raise CheckFailed("stuck names a rank twice.", got=repr(got), where=where)
    returned("stuck", got, list(right), where=where)
