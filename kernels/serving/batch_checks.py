"""The check of a batcher: what became of the requests of a trace, held against the rules, decision by decision."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from warplab.checks import CheckFailed
from warplab.checks.errors import whole, wrong_type


def check_serving(
    name: str, got: Any, arrivals: Sequence[int], wait: int, most: int, service: Sequence[int], room: int
) -> None:
    """Check what became of requests: `got` is (batches, refused); raise CheckFailed at the first rule that is broken.

    `arrivals`: when each request came, in whole µs, increasing. `wait`: µs after which the oldest request starts a
    batch, if the engine is idle. `most`: requests in a batch. `service[n - 1]`: µs that a batch of n takes. `room`:
    requests that may wait. A batch is (begin, list of requests). Of what happens at one moment, arrivals come first.
    """
    where = f"wait = {wait}, most = {most}, service = {list(service)}, room = {room}, arrivals = {list(arrivals)}"
    try:
        batches, refused = _served(name, got, len(arrivals), most)
        _all_once(name, batches, refused, len(arrivals))
        _in_time(name, batches, refused, arrivals, wait, most, service, room)
    except CheckFailed as failed:
        raise failed.at(where) from None


def _served(name: str, got: Any, requests: int, most: int) -> tuple[list[tuple[int, list[int]]], list[int]]:
    """Return the batches and the refused requests, with types and ranges as they must be."""
    if got is None:
        raise CheckFailed(f"{name} is not written yet: it returns nothing.", kind="not written")
    if not isinstance(got, list | tuple) or len(got) != 2 or not all(isinstance(part, list | tuple) for part in got):
        found = f"{type(got).__name__}: {got!r}"[:200]
        raise wrong_type(f"{name} returns the wrong type.", expected="(batches, refused), two lists", got=found)
    batches = []
    for number, batch in enumerate(got[0]):
        right = isinstance(batch, list | tuple) and len(batch) == 2 and whole(batch[0])
        if not right or not isinstance(batch[1], list | tuple) or not all(map(whole, batch[1])):
            raise wrong_type(
                f"{name}: batch {number} is not one.",
                expected="(begin, list of request numbers), begin in whole µs",
                got=repr(batch)[:200],
            )
        batches.append((int(batch[0]), [int(request) for request in batch[1]]))
        if not 1 <= len(batch[1]) <= most:
            raise CheckFailed(
                f"{name}: batch {number} has {'no request' if not batch[1] else 'too many requests'}.",
                expected=f"1 to {most}",
                got=str(len(batch[1])),
            )
    refused = list(got[1])
    for request in [request for _, served in batches for request in served] + refused:
        if not whole(request) or not 0 <= request < requests:
            raise CheckFailed(
                f"{name} names a request that does not exist.", expected=f"0 to {requests - 1}", got=repr(request)
            )
    return batches, [int(request) for request in refused]


def _all_once(name: str, batches: list[tuple[int, list[int]]], refused: list[int], requests: int) -> None:
    answered = [request for _, served in batches for request in served]
    fates = [(request, answered.count(request), refused.count(request)) for request in range(requests)]
    for request, times, refusals in fates:
        if times + refusals == 1:
            continue
        if times + refusals == 0:
            problem, got = f"request {request} is lost", "it is in no batch, and not refused"
        elif times and refusals:
            problem, got = f"request {request} is refused, and answered all the same", f"in {times} of the batches"
        else:
            problem, got = (
                f"request {request} is {'answered' if times else 'refused'} twice",
                f"{times + refusals} times",
            )
        raise CheckFailed(
            f"{name}: {problem}.",
            expected="each request once, in one batch or among those refused",
            got=got,
            look_at="what becomes of a request from its arrival on, and of those still waiting after the last arrival",
        )
    for (one, earlier), (other, later) in itertools.pairwise(batches):
        if other < one or later[0] < earlier[-1]:
            wrong = "begins before the one before it" if other < one else "has an older request than the one before it"
            raise CheckFailed(
                f"{name}: a batch {wrong}.", expected="batches and requests in order", got=f"{other}: {later}"
            )
    for begin, served in batches:
        if served != sorted(served):
            raise CheckFailed(
                f"{name}: the batch at {begin} µs is not in order.", expected=str(sorted(served)), got=str(served)
            )


def _in_time(
    name: str,
    batches: list[tuple[int, list[int]]],
    refused: list[int],
    arrivals: Sequence[int],
    wait: int,
    most: int,
    service: Sequence[int],
    room: int,
) -> None:
    """Go through the trace, batch by batch, and hold each decision against the rules."""
    came, free = 0, 0
    waiting: list[int] = []

    def arrive(until: float) -> None:
        nonlocal came
        while came < len(arrivals) and arrivals[came] <= until:
            full = len(waiting) >= room
            if full and came not in refused:
                raise CheckFailed(
                    f"{name}: request {came} is accepted, although the queue is full.",
                    expected=f"refused: at {arrivals[came]} µs {room} requests wait",
                    got=f"{len(waiting) + 1} waiting, with room for {room}",
                    look_at="how many wait when a request comes; those in the engine wait no longer",
                )
            if not full and came in refused:
                raise CheckFailed(
                    f"{name}: request {came} is refused, although there is room.",
                    expected=f"accepted: at {arrivals[came]} µs {len(waiting)} requests wait, with room for {room}",
                    got="refused",
                    look_at="how many wait when a request comes; those in the engine wait no longer",
                )
            if not full:
                waiting.append(came)
            came += 1

    for begin, served in batches:
        early = [request for request in served if arrivals[request] > begin]
        if early:
            raise CheckFailed(
                f"{name}: the batch at {begin} µs has request {early[0]}, which is not there yet.",
                expected=f"at {arrivals[early[0]]} µs or later",
                got=f"{begin} µs",
                look_at="which requests have come when a batch begins",
            )
        if begin < free:
            raise CheckFailed(
                f"{name}: the batch at {begin} µs begins while the engine is busy.",
                expected=f"at {free} µs or later, when the batch before it is done",
                got=f"{begin} µs",
                look_at="when the engine is idle again: a batch of n takes service[n - 1] µs",
            )
        arrive(begin)
        oldest = arrivals[waiting[0]]
        full_at = arrivals[waiting[most - 1]] if len(waiting) >= most else math.inf
        if begin < oldest + wait and begin < full_at:
            raise CheckFailed(
                f"{name}: the batch at {begin} µs begins too early.",
                expected=f"{most} requests that wait, or one that has waited {wait} µs",
                got=f"{len(waiting)} waiting, the oldest for {begin - oldest} µs",
                look_at="the two conditions for a batch, and the request whose waiting counts",
            )
        due = max(free, min(oldest + wait, full_at))
        if begin > due:
            why = f"{most} requests wait" if full_at <= oldest + wait else f"request {waiting[0]} has waited {wait} µs"
            raise CheckFailed(
                f"{name}: the batch at {begin} µs begins too late.",
                expected=f"at {due:.0f} µs: the engine is idle, and {why}",
                got=f"{begin} µs",
                look_at="what may start a batch while the engine is idle, and when it becomes idle",
            )
        wanted = waiting[: len(served)]
        if served != wanted or len(served) < min(most, len(waiting)):
            raise CheckFailed(
                f"{name}: the batch at {begin} µs leaves requests waiting that it could take.",
                expected=f"the oldest {min(most, len(waiting))} of those that wait: {waiting}",
                got=str(served),
                look_at="which requests have come when the batch begins, those that come at that moment included",
            )
        del waiting[: len(served)]
        free = begin + service[len(served) - 1]
    arrive(math.inf)
