"""Checks of the lesson's tasks whose answers are parts of a schedule: each makes the whole of what was answered, checks
that, and returns a schedule made of the answers, to be drawn.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernels.collectives.answer_checks import check_messages, check_programs, in_rounds
from kernels.collectives.figures import draw_overlap
from kernels.collectives.forward_checks import Ring, check_forward
from kernels.collectives.programs import ProgramLine
from kernels.collectives.scaling_model import Bucket, TrainingStep
from kernels.collectives.schedule import Schedule, ScheduleError, Send, holdings
from warplab import virtual_devices
from warplab.checks import CheckFailed, called, returned
from warplab.checks.errors import wrong_type
from warplab.simulator import DataRace

RINGS = ((0, 1, 2, 3), (0, 1), (0, 2, 1, 3), (2, 0, 1), (3, 1, 4, 0, 2))
MOST_SLICES = 5
RANKS = (4, 2, 3, 5, 8)


def check_one_slice(one_slice: Callable[[list[int], int], Any]) -> Schedule:
    """Raise CheckFailed unless the messages of one slice after the other make a broadcast in S + k − 2 steps.

    `one_slice(ring, slice)`: a list of (step, source, destination, slice); the ring's first rank is the root.
    """
    count = 0
    for ring in RINGS:
        for slices in range(1, MOST_SLICES + 1):
            messages = [message for i in range(slices) for message in _messages(one_slice, list(ring), i)]
            steps = slices + len(ring) - 2
            check_messages(one_slice.__name__, messages, "broadcast", ring, slices, ring[0], steps=steps)
            count += 1
    print(f"one_slice: right for {count} broadcasts.")
    shown = [message for i in range(4) for message in _messages(one_slice, [0, 2, 1, 3], i)]
    return Schedule("broadcast", 4, 4, tuple(Send(*message) for message in shown))


def check_slice_to_send(slice_to_send: Callable[[int, int, int], Any]) -> Schedule:
    """Raise CheckFailed unless a ring on which rank r sends slice_to_send(r, step, k) does a reduce-scatter."""
    for k in RANKS:
        messages = _scattered(slice_to_send, k)
        _check_owners(messages, k)
        check_messages(slice_to_send.__name__, messages, "reduce-scatter", range(k), k, steps=k - 1)
    print(f"slice_to_send: right for {len(RANKS)} rings.")
    sends = tuple(Send(*message, True) for message in _scattered(slice_to_send, 4))
    return Schedule("reduce-scatter", 4, 4, sends)


def check_pass_on(pass_on: Any) -> None:
    """Raise CheckFailed unless the kernel in CUDA C++ hands a buffer on along rings."""
    rings = [Ring((1, 0), 100, 1), Ring((0, 1, 2), 65, 1), Ring((2, 0, 3, 1), 301, 1, gated=True)]
    check_forward(pass_on, rings, [(1, 32), (1, 96)], language="CUDA C++")


def _check_owners(messages: Sequence[tuple[int, int, int, Any]], k: int) -> None:
    """Raise CheckFailed if a rank does not send on what it has just received, or sums are complete at other ranks."""
    if not all(isinstance(i, int) and 0 <= i < k for *_, i in messages):
        return
    sent = {(step, rank): i for step, rank, _, i in messages}
    for (step, rank), i in sent.items():
        if step and sent[step - 1, (rank - 1) % k] != i:
            raise CheckFailed(
                f"slice_to_send: rank {rank} does not send on what it has just received.",
                expected=f"in step {step} slice {sent[step - 1, (rank - 1) % k]}, which came in step {step - 1}",
                got=f"slice {i}",
                where=f"k = {k}",
                look_at="how the number changes from step to step",
            )
    try:
        *_, held = holdings(Schedule("reduce-scatter", k, k, tuple(Send(*message, True) for message in messages)))
    except ScheduleError:
        return
    complete = [[rank for rank in range(k) if held[rank][i] == (1 << k) - 1] for i in range(k)]
    if all(complete) and 0 not in complete[0]:
        raise CheckFailed(
            f"slice_to_send: slice 0 is complete at rank {complete[0][0]}, not at rank 0, which owns it.",
            where=f"k = {k}",
            look_at="at which rank a slice begins its journey",
        )


def _scattered(slice_to_send: Callable[[int, int, int], Any], k: int) -> list[tuple[int, int, int, Any]]:
    where = "slice_to_send({}, {}, {})"
    return [
        (step, rank, (rank + 1) % k, called(slice_to_send, where.format(rank, step, k), rank, step, k))
        for step in range(k - 1)
        for rank in range(k)
    ]


def check_one_step(one_step: Callable[[list[tuple[int, int]], list[np.ndarray]], Any], seed: int = 1) -> None:
    """Raise CheckFailed unless one_step(messages, arrays) adds to each destination what its sources held before."""
    rng = np.random.default_rng(seed)
    cases = [[(0, 1)], [(0, 1), (1, 0)], [(0, 1), (1, 2), (2, 0)], [(2, 1), (0, 2)], [(0, 2), (1, 2), (2, 0)]]
    for messages in cases:
        arrays = [rng.integers(-99, 100, 3) for _ in range(3)]
        given, where = [array.copy() for array in arrays], f"messages {messages}, arrays {[a.tolist() for a in arrays]}"
        right = [array + sum(arrays[a] for a, b in messages if b == rank) for rank, array in enumerate(arrays)]
        got = called(one_step, where, list(messages), given)
        try:
            returned("one_step", got, right, parts="the array of rank {}", where=where)
            returned("the arrays given to one_step", given, arrays, parts="the given array of rank {}", where=where)
        except CheckFailed as failed:
            raise failed.but(look_at="what a message carries: what its source held when the step began") from None
        if any(np.may_share_memory(one, other) for one in got for other in given):
            raise CheckFailed("one_step returns an array that it was given, not a new one.", where=where)
    print(f"one_step: right for {len(cases)} steps, seed {seed}.")


def check_receives_first(receives_first: Callable[[int], Any]) -> Schedule:
    """Raise CheckFailed unless blocking programs in that order end, in the fewest rounds that are possible.

    `receives_first(place)`: whether the rank at that place of the ring receives before it sends, in every step.
    Returns the messages on 4 ranks, each in the round in which both ranks are ready for it.
    """
    for k in RANKS:
        ring, part = list(range(k)), "receives_first({})"
        first = [called(receives_first, part.format(place), place) for place in ring]
        if wrong := [answer for answer in first if not isinstance(answer, bool | np.bool_)]:
            raise wrong_type("receives_first returns the wrong type.", expected="True or False", got=repr(wrong[0]))
        programs = _programs(first)
        rounds = 2 * (k - 1 + k % 2)
        check_programs("receives_first", programs, "reduce-scatter", ring, k, rounds=rounds)
    print(f"receives_first: right for {len(RANKS)} rings.")
    programs = _programs([receives_first(place) for place in range(4)])
    operations = [[ProgramLine(action, peer, i, reduce=True) for action, peer, i in lines] for lines in programs]
    return Schedule("reduce-scatter", 4, 4, tuple(in_rounds(operations)))


def _programs(receive_first: Sequence[bool]) -> list[list[tuple[str, int, int]]]:
    """Return the blocking programs of a reduce-scatter on the ring 0, 1, ..., one per rank."""
    k = len(receive_first)
    return [
        [
            line
            for step in range(k - 1)
            for line in _in_order(
                receive_first[place],
                ("send", (place + 1) % k, (place - step - 1) % k),
                ("receive", (place - 1) % k, (place - step - 2) % k),
            )
        ]
        for place in range(k)
    ]


def check_shares(add_peer: Any) -> None:
    """Raise CheckFailed if a kernel own[i] += peer[i] leaves elements to nobody, or several threads to one element.

    A first look at how the elements are shared out, on two virtual devices; whatever else is wrong is left to others.
    """
    threads, n = 32, 100
    try:
        with virtual_devices(2) as devices:
            own, peer = (device.asarray(np.arange(1.0, n + 1, dtype=np.float32)) for device in devices)
            devices[0].launch(add_peer, 1, threads, (own, peer))
        added = own.get() != np.arange(1, n + 1)
    except DataRace as race:
        raise CheckFailed(
            f"{add_peer.__name__} has a data race.",
            got=str(race).splitlines()[0],
            where=f"n = {n}, 1 block of {threads} threads",
            look_at="which thread an element belongs to: one alone",
            kind="race",
        ) from None
    except Exception:
        return
    if added[:threads].all() and not added[threads:].any():
        raise CheckFailed(
            f"{add_peer.__name__}: elements from {threads} on still have the value that they came with.",
            where=f"n = {n}, 1 block of {threads} threads",
            look_at=f"who takes these elements when there are only {threads} threads",
        )


def draw_finish(finish: Callable[[list[float], list[float]], float]) -> Figure:
    """Return the timeline of a step whose all-reduces end when the learner's finish(ready, lasts) says, in ms."""
    ready, lasts = [5.0, 7.0, 9.0, 10.0], [1.0, 3.0, 2.0, 2.0]
    buckets = []
    for i, duration in enumerate(lasts):
        end = float(finish(ready[: i + 1], lasts[: i + 1]))
        buckets.append(Bucket(1, 1, ready[i] / 1e3, (end - duration) / 1e3, end / 1e3))
    return draw_overlap("your all-reduces", four_buckets=TrainingStep(3e-3, 10e-3, tuple(buckets)))


def _in_order(receive_first: bool, send: tuple, receive: tuple) -> tuple[tuple, tuple]:
    return (receive, send) if receive_first else (send, receive)


def _messages(one_slice: Callable[[list[int], int], Any], ring: list[int], i: int) -> Sequence[Any]:
    where = f"one_slice({ring}, {i})"
    got = called(one_slice, where, list(ring), i)
    if not isinstance(got, list | tuple):
        raise wrong_type("one_slice returns the wrong type.", expected="a list", got=type(got).__name__, where=where)
    return [(m.step, m.source, m.destination, m.slice) if isinstance(m, Send) else m for m in got]
