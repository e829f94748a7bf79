"""Checks of the lesson's tasks whose answers are run as a whole: a kernel that waits, a rule that forms batches,
latencies of a queue. Each raises CheckFailed, or prints that the answer is right and returns a picture of it.
"""

import contextlib
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from kernels.serving import figures
from kernels.serving.overlap.streams.figures import draw_timeline
from kernels.serving.overlap.streams.hazards import races
from kernels.serving.overlap.streams.schedule import Schedule, ScheduleError
from kernels.serving.overlap.streams.timeline import simulate as simulate_streams
from warplab import simulate
from warplab.checks import Case, CheckFailed, called, examples, kernel, returned, shared_work
from warplab.checks.errors import wrong_type
from warplab.launch.kernel_source import CudaSource, is_empty, source_of
from warplab.simulator import InstructionLimit

CLOCKS = (1_000, 20_000)
CLOCK = re.compile(r"\bclock(64)?\s*\(\s*\)")
LOOP = re.compile(r"\b(?:while|for|do)\b")
MOST_PER_CLOCK = 4  # instructions of a waiting loop per clock of the simulator, which counts PTX instructions


def check_spin(spin: Any) -> None:
    """Raise CheckFailed unless a thread of spin(clocks) waits for so many clocks, and not for very many more."""
    source = source_of(spin)
    if not isinstance(source, CudaSource):
        raise CheckFailed("spin shall be written in CUDA C++.", look_at="the cell's first line, %%cuda")
    if "" in CLOCK.findall(source.code):
        raise CheckFailed("clock() has 32 bits, and begins anew after some seconds.", look_at="clock64()")
    blank = not LOOP.search(source.code)
    # The simulator's clock begins with the launch, a GPU's long before.
    later = replace(source, code=CLOCK.sub(f"(clock64() + {2**40}LL)", source.code))
    for clocks in CLOCKS:
        where = f"spin((1,), (1,), (np.int64({clocks}),))"
        try:
            ran = simulate(later, 1, 1, (np.int64(clocks),), instruction_limit=400 * clocks).counts.thread_instructions
        except InstructionLimit:
            raise CheckFailed(
                "spin does not end.",
                where=where,
                look_at="whether the clock is read anew in each pass of the loop",
                kind="endless",
            ) from None
        if ran < clocks:
            blank = blank and ran <= 3
            early = "what is compared with `clocks`: the time since the start. (A loop that only counts is removed.)"
            raise CheckFailed(
                "spin is not written yet: it ends at once." if blank else "spin ends too early.",
                expected=f"{clocks} instructions or more: the simulator's clock counts them",
                got=f"{ran} instructions",
                where=where,
                look_at="the kernel's body: a loop that ends when the clock says so" if blank else early,
                kind="not written" if blank else "wrong result",
            )
        if ran > MOST_PER_CLOCK * clocks:
            raise CheckFailed(
                "spin waits too long.", expected=f"about {clocks} clocks", got=f"{ran} instructions", where=where
            )
    print(f"spin: right for {len(CLOCKS)} waits.")


def waits(spin: Any, otherwise: str) -> bool:
    """Return whether `spin` passes its check; where it does not, print why, and what is shown `otherwise`."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            check_spin(spin)
    except CheckFailed as failed:
        print(f"{failed.problem} Until it passes its check above, {otherwise}.")
        return False
    return True


def check_flush(flush: Callable[[int, float, int, float], Any]) -> Figure:
    """Raise CheckFailed unless flush(waiting, waited, batch_limit, wait_limit) is True for a full batch or a late one.

    Returns the picture of the batches that the learner's rule makes of 24 requests.
    """
    names = ("waiting", "waited", "batch_limit", "wait_limit")
    cases = [(n, past, most, limit) for most, limit in ((4, 10), (8, 3)) for n in range(1, 10) for past in range(12)]
    table = [(dict(zip(names, case, strict=True)), case[0] >= case[2] or case[1] >= case[3]) for case in cases]
    examples(flush, table)
    rng = np.random.default_rng(11)
    arrivals = sorted(float(t) for t in np.concatenate([rng.uniform(0, 30, 14), rng.uniform(30, 90, 10)]))
    batches = batches_of(flush, arrivals, batch_limit=4, wait_limit=10, service=lambda size: 3 + 0.5 * size)
    return figures.draw_batches(arrivals, batches, "time", "your rule: batches of at most 4, a wait of at most 10")


def batches_of(
    flush: Callable[[int, float, int, float], bool],
    arrivals: Sequence[float],
    *,
    batch_limit: int,
    wait_limit: float,
    service: Callable[[int], float],
    tick: float = 0.25,
) -> list[tuple[float, float, list[int]]]:
    """Return the batches (begin, end, requests) of one engine if `flush` is asked every `tick` while it is idle."""
    batches: list[tuple[float, float, list[int]]] = []
    queue: list[int] = []
    arrived, now, free = 0, 0.0, 0.0
    horizon = max(arrivals) + len(arrivals) * (service(batch_limit) + wait_limit)
    while (arrived < len(arrivals) or queue) and now < horizon:
        while arrived < len(arrivals) and arrivals[arrived] <= now:
            queue.append(arrived)
            arrived += 1
        if queue and free <= now and flush(len(queue), now - arrivals[queue[0]], batch_limit, wait_limit):
            batch, queue = queue[:batch_limit], queue[batch_limit:]
            free = now + service(len(batch))
            batches.append((now, free, batch))
        now += tick
    return batches


def check_latencies(latencies: Callable[[list[float], list[float]], Any], seed: int = 11) -> None:
    """Raise CheckFailed unless latencies(arrivals, services) is what a first-come, first-served queue gives."""
    rng = np.random.default_rng(seed)
    cases = [([0.0], [2.0]), ([0.0, 1.0, 2.0], [5.0, 1.0, 1.0]), ([0.0, 9.0], [2.0, 3.0])]
    for n in (5, 20):
        cases.append((np.cumsum(rng.integers(0, 5, n)).astype(float).tolist(), rng.integers(1, 5, n).tolist()))
    for arrivals, services in cases:
        where = f"latencies({arrivals}, {services})"
        got = called(latencies, where, list(arrivals), list(services))
        try:
            wanted = first_come_first_served(arrivals, services)
            returned("latencies", got, wanted, parts="the latency of request {}", where=where)
        except CheckFailed as failed:
            if failed.kind == "wrong type":
                raise
            look_at = "when the server is free, and from when on a latency counts: from the request's arrival"
            raise failed.but(where=where, look_at=look_at) from None
    print(f"latencies: right for {len(cases)} queues, seed {seed}.")


def first_come_first_served(arrivals: Iterable[float], services: Iterable[float]) -> list[float]:
    """Return the times from arrival to answer, by one server that takes requests in the order of their arrival."""
    free, found = 0.0, []
    for arrival, service in zip(arrivals, services, strict=True):
        free = max(free, arrival) + service
        found.append(free - arrival)
    return found


def check_choice(function: Callable[..., Any], table: Sequence[tuple[dict[str, Any], str]]) -> None:
    """Raise CheckFailed unless `function` returns the word of each row. `table`: (keyword arguments, word)."""
    name, words = function.__name__, sorted({word for _, word in table})
    for arguments, word in table:
        where = f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        one_of = " or ".join(map(repr, words))
        try:
            got = called(function, where, **arguments)
        except CheckFailed as failed:
            if failed.kind == "not written":
                failed = failed.but(expected=one_of, where=where, look_at="the function's body: let it return a word")
            raise failed from None
        if not isinstance(got, str) or got not in words:
            problem = f"{name} returns something else than a word of the three."
            raise wrong_type(problem, expected=one_of, got=repr(got), where=where, look_at="each return statement")
        if got != word:
            look_at = "which of the two shares is larger, and whether it reaches the line"
            raise CheckFailed(
                f"{name} returns the wrong word.", expected=repr(word), got=repr(got), where=where, look_at=look_at
            )
    print(f"{name}: right for {len(table)} inputs.")


def check_overlapped(overlapped: Callable[[int], Any]) -> Figure:
    """Raise CheckFailed unless overlapped(chunks) copies, runs and copies back each chunk, no two of them racing,
    in chunks + 2 units of time. Returns the timeline of the learner's schedule."""
    schedule = Schedule()
    for chunks in (2, 4, 7):
        where = f"overlapped({chunks})"
        schedule = _schedule(overlapped, where, chunks)
        wanted = [f"{kind}{i}" for kind in ("H2D x", "run ", "D2H y") for i in range(chunks)]
        _check_operations("overlapped", schedule, wanted, where)
        _check_races("overlapped", schedule, where)
        timeline = simulate_streams(schedule)
        for i in range(chunks):
            for first, then in itertools.pairwise((f"H2D x{i}", f"run {i}", f"D2H y{i}")):
                if timeline.of(first).end > timeline.of(then).start:
                    look_at = "the order of issue: what one stream gets, it does in that order"
                    raise CheckFailed(f"overlapped: '{then}' comes before '{first}'.", where=where, look_at=look_at)
        _check_end("overlapped", schedule, chunks + 2, where)
    print("overlapped: right for 3 numbers of chunks.")
    timeline = simulate_streams(_schedule(overlapped, "overlapped(4)", 4))
    saved = 12 - timeline.end
    return draw_timeline(timeline, f"your schedule of 4 chunks: {timeline.end:g} units of time, {saved:g} saved")


def two_streams(chunks: int, hand_over: Callable[[Schedule, int], Any]) -> Schedule:
    """Put all copies in stream "copy", all kernels in "run"; hand_over(schedule, i) comes between those of chunk i."""
    s = Schedule()
    for i in range(chunks):
        s.h2d(f"x{i}", "copy", ms=1)
        hand_over(s, i)
        s.kernel(f"run {i}", "run", ms=1, reads=f"x{i}", writes=f"y{i}")
    return s


def check_hand_over(hand_over: Callable[[Schedule, int], Any]) -> Figure:
    """Raise CheckFailed unless hand_over(schedule, i) lets kernel i wait for copy i, and nothing for anything else."""
    if is_empty(hand_over):
        raise CheckFailed("hand_over is not written yet: it issues nothing.", kind="not written")
    for chunks in (1, 4):
        where = f"{chunks} chunk{'s' if chunks > 1 else ''}"

        @functools.wraps(hand_over)
        def made(n: int) -> Schedule:
            return two_streams(n, hand_over)

        schedule = _schedule(made, where, chunks)
        strange = [o for o in schedule if o.stream not in ("copy", "run", None)]
        if strange:
            raise CheckFailed(
                "hand_over uses a third stream.",
                expected='the streams "copy" and "run"',
                got=str(strange[0]),
                where=where,
                look_at="the arguments: s.record(event, stream) and s.wait(event, stream)",
            )
        if any(o.kind in ("sync", "host") for o in schedule):
            look_at = "record and wait, which order streams without the host"
            raise CheckFailed("hand_over keeps the host waiting.", where=where, look_at=look_at)
        _check_races("hand_over", schedule, where)
        _check_end("hand_over", schedule, chunks + 1, where)
    print("hand_over: right for 2 numbers of chunks.")
    timeline = simulate_streams(two_streams(4, hand_over))
    return draw_timeline(timeline, f"your events: no race, {timeline.end:g} units of time", rows="stream")


def _schedule(make: Callable[[int], Any], where: str, chunks: int) -> Schedule:
    try:
        schedule = called(make, where, chunks)
    except CheckFailed as failed:
        if isinstance(failed.__cause__, ScheduleError):
            raise CheckFailed(str(failed.__cause__), where=where, kind="arguments") from None
        raise
    if not isinstance(schedule, Schedule):
        got = type(schedule).__name__
        raise wrong_type("A schedule is expected.", expected="a Schedule", got=got, where=where)
    return schedule


def _check_operations(name: str, schedule: Schedule, wanted: Sequence[str], where: str) -> None:
    got = sorted(o.name for o in schedule if o.kind in ("h2d", "kernel", "d2h"))
    if got != sorted(wanted):
        missing = [n for n in wanted if n not in got] or [n for n in got if n not in wanted or got.count(n) > 1]
        raise CheckFailed(
            f"{name} does not issue each copy and each kernel once.",
            expected=", ".join(wanted),
            got=", ".join(got) or "no operation",
            where=where,
            look_at=f"'{missing[0]}'" if missing else "",
        )
    for o in schedule:
        i = o.name.split()[-1].strip("xy")
        if o.kind == "kernel" and (o.reads, o.writes) != ((f"x{i}",), (f"y{i}",)):
            raise CheckFailed(
                f"'{o.name}' works on other buffers.",
                expected=f"reads x{i}, writes y{i}",
                got=f"reads {', '.join(o.reads) or 'nothing'}, writes {', '.join(o.writes) or 'nothing'}",
                where=where,
            )
        if o.kind in ("h2d", "kernel", "d2h") and (o.ms != 1 or o.share != 1):
            raise CheckFailed(f"'{o.name}' shall take one unit of time: ms=1.", got=f"ms={o.ms:g}", where=where)


def _check_races(name: str, schedule: Schedule, where: str) -> None:
    for race in races(schedule):
        raise CheckFailed(f"{name} leaves a race.", got=str(race), where=where, kind="race")


def _check_end(name: str, schedule: Schedule, most: float, where: str) -> None:
    end = simulate_streams(schedule).end
    if end > most + 1e-9:
        raise CheckFailed(
            f"{name} is right, but what could overlap does not.",
            expected=f"at most {most:g} units of time",
            got=f"{end:g}",
            where=where,
            look_at="which operation waits for one that it does not need",
        )


def draw_wait(wait: Callable[[float, float], float], seed: int = 11) -> Figure:
    """Draw the learner's wait(load, 1) as a line, and what simulated queues with constant and random service gave."""
    rng = np.random.default_rng(seed)
    simulated: dict[str, dict[float, float]] = {"simulated, constant service": {}, "simulated, exponential service": {}}
    for load in (0.2, 0.4, 0.6, 0.8, 0.9):
        n = 40_000
        arrivals = np.cumsum(rng.exponential(1 / load, n))
        for name, services in zip(simulated, (np.ones(n), rng.exponential(1, n)), strict=True):
            simulated[name][load] = float(np.mean(first_come_first_served(arrivals, services) - services))
    curves = {"your formula": lambda load: wait(load, 1.0), "M/M/1: twice as long": lambda load: load / (1 - load)}
    return figures.draw_waiting(curves, simulated, f"40,000 requests each, seed {seed}")


def check_planes(planes: Any) -> None:
    """Raise CheckFailed unless a thread per pixel writes out[c, y, x] = frame[y, x, c] * scale."""
    blocks = [(32, 4), (16, 16)]
    launches = [lambda size, b=b: ((-(-size[1] // b[0]), -(-size[0] // b[1])), b) for b in blocks]
    shared = shared_work(lambda size: size[0] * size[1], instructions=300, busy=0.4, bytes_loaded=3, bytes_written=12)
    sizes = [(1, 1), (3, 5), (9, 33), (20, 70)]
    try:
        kernel(planes, _frame, sizes=sizes, launches=launches, shared=shared, rtol=1e-6, language="Numba")
    except CheckFailed as failed:
        if failed.kind != "outside" or " of frame" not in failed.problem:  # behind its guard, an index of out is wrong
            raise failed from None
        look_at = "the guard: what a thread does whose pixel lies beyond the last column, or below the last row"
        raise failed.but(expected="", look_at=look_at) from None


def _frame(rng: np.random.Generator, size: tuple[int, int]) -> Case:
    frame, scale = rng.integers(0, 256, (*size, 3), np.uint8), np.float32(rng.uniform(0.5, 2))
    planes = np.ascontiguousarray((frame * scale).transpose(2, 0, 1), np.float32)
    return Case({"frame": frame, "scale": scale, "out": None}, {"out": planes})
