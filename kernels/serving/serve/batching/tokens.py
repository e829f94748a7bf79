"""A token generator in virtual time: continuous batching, slots, and KV memory in blocks. No GPU, no weights.

    made = generate(drawn(60, seed=11), Engine(), Memory(blocks=40, size=16), grow)
    made.first_token, made.per_token, made.throughput

A request is a prompt and a number of tokens to generate. A step gives each running request one token; the step in which
a request joins also reads its prompt. Keys and values of all tokens so far stay in memory, in blocks of `size` tokens,
until the request ends: `grow`, the learner's allocator, takes blocks from the free ones. So memory, not only slots,
bounds how many run; the rest wait. A running request that finds no block makes the youngest one start anew later.

continuous     - whoever waits joins before the next step, as long as slots and blocks are free (Orca, 2022)
by requests    - `flush`, the lesson's rule, starts a batch, and nobody joins until its last request has ended

Sources: Yu and others, Orca, OSDI 2022; Kwon and others, PagedAttention, SOSP 2023 (blocks, preemption by recomputing).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from warpcourse.bench.charts import chart
from warplab.checks import CheckFailed, called
from warplab.draw.style import BLUE, GREY, ORANGE, PALE, finish

Grow = Callable[[list[int], list[int], int, int], bool]
Flush = Callable[[int, float, int, float], bool]
Model = Callable[[Sequence[int], Sequence[Sequence[int]], Sequence[int]], float]
TICK = 0.25  # units of time between two looks of an idle engine at `flush`


@dataclass(frozen=True)
class Request:
    """`arrival`: when it comes. `prompt`: tokens that it brings. `steps`: tokens to generate, 1 or more."""

    arrival: float
    prompt: int
    steps: int


@dataclass(frozen=True)
class Engine:
    """A step takes `step` + `sequence` for each running request + `token` for each prompt's token that it reads."""

    slots: int = 16
    step: float = 1.0
    sequence: float = 0.02
    token: float = 0.005


@dataclass(frozen=True)
class Memory:
    """`blocks` blocks with room for keys and values of `size` tokens each."""

    blocks: int
    size: int


@dataclass
class Generated:
    """What happened. By request: `first`, when its first token came, `end`, its last, and `begun`, when it first ran.

    `steps`: (begin, end, requests that ran, blocks in use). `preempted`: how often one had to start anew.
    """

    requests: Sequence[Request]
    first: np.ndarray
    end: np.ndarray
    begun: np.ndarray
    steps: list[tuple[float, float, tuple[int, ...], int]] = field(default_factory=list)
    preempted: int = 0

    @property
    def first_token(self) -> np.ndarray:
        """Return the time from arrival to the first token, by request."""
        return self.first - [request.arrival for request in self.requests]

    @property
    def per_token(self) -> np.ndarray:
        """Return the mean time between two tokens, of each request with two or more."""
        more = np.array([request.steps - 1 for request in self.requests])
        return (self.end - self.first)[more > 0] / more[more > 0]

    @property
    def throughput(self) -> float:
        """Return tokens per unit of time."""
        return sum(request.steps for request in self.requests) / self.steps[-1][1] if self.steps else 0.0


def drawn(count: int, seed: int, rate: float = 0.25) -> list[Request]:
    """Draw requests that come at random moments, `rate` per unit of time, most of them short, some long."""
    rng = np.random.default_rng(seed)
    arrivals = rng.exponential(1 / rate, count).cumsum()
    prompts, steps = rng.integers(4, 65, count), rng.geometric(1 / 24, count).clip(1, 128)
    return [Request(float(a), int(p), int(s)) for a, p, s in zip(arrivals, prompts, steps, strict=True)]


def grow(blocks: list[int], free: list[int], tokens: int, size: int) -> bool:
    """Take blocks from `free` until `blocks` hold `tokens` tokens; False, and nothing taken, if there are too few."""
    missing = -(-tokens // size) - len(blocks)
    if missing > len(free):
        return False
    for _ in range(missing):
        blocks.append(free.pop())
    return True


def generate(
    requests: Sequence[Request],
    engine: Engine,
    memory: Memory,
    grow: Grow = grow,
    flush: Flush | None = None,
    wait_limit: float = 8.0,
    model: Model | None = None,
) -> Generated:
    """Generate all tokens: continuously, or in batches of requests that `flush` starts.

    `model`: does each step for those who run, in their blocks, told who joins, and says how long it took (decoder.py);
    without one, time is virtual.
    ValueError for a request that has no room even alone, and for a `flush` that starts no batch.
    """
    n = len(requests)
    for number, request in enumerate(requests):
        needs = -(-(request.prompt + request.steps) // memory.size)
        if needs > memory.blocks:
            raise ValueError(f"request {number} needs {needs} blocks of {memory.blocks}; it would wait for ever")
    made = Generated(requests, *(np.full(n, np.nan) for _ in range(3)))
    free, held, tokens = list(range(memory.blocks)), [[] for _ in range(n)], [r.prompt for r in requests]
    waiting, running, coming, now = deque[int](), list[int](), 0, 0.0

    def leave(number: int) -> None:
        running.remove(number)
        free.extend(held[number])
        held[number].clear()

    while coming < n or waiting or running:
        while coming < n and requests[coming].arrival <= now:
            waiting.append(coming)
            coming += 1
        open_ = flush is None
        if flush is not None and waiting and not running:
            open_ = flush(len(waiting), now - requests[waiting[0]].arrival, engine.slots, wait_limit)
        for number in list(running):  # each needs room for its next token, the oldest first
            while number in running and not grow(held[number], free, tokens[number] + 1, memory.size):
                youngest = running[-1]
                leave(youngest)
                waiting.appendleft(youngest)
                made.preempted += 1
                open_ = False
        joined = list[int]()
        while open_ and waiting and len(running) < engine.slots:
            number = waiting[0]
            if not grow(held[number], free, tokens[number] + 1, memory.size):
                break
            running.append(waiting.popleft())
            joined.append(number)
        if not running:
            if waiting and now - max(requests[-1].arrival, requests[waiting[0]].arrival) > 100 * wait_limit:
                raise ValueError("flush starts no batch, although requests have waited a hundred times the wait limit")
            now = now + TICK if waiting else requests[coming].arrival
            continue
        read = sum(tokens[number] for number in joined)  # of one that starts anew, also those that it had generated
        took = engine.step + engine.sequence * len(running) + engine.token * read
        begin, now = now, now + (took if model is None else model(running, held, joined))
        made.steps.append((begin, now, tuple(running), memory.blocks - len(free)))
        for number in list(running):
            made.begun[number] = np.fmin(made.begun[number], begin)
            tokens[number] += 1
            made.first[number] = np.fmin(made.first[number], now)
            if tokens[number] == requests[number].prompt + requests[number].steps:
                made.end[number] = now
                leave(number)
    return made


def check_grow(answer: Grow, seed: int = 11) -> Figure:
    """Raise CheckFailed unless `answer` takes what a request lacks, all or none. Returns a picture of its run."""
    rng = np.random.default_rng(seed)
    cases = [
        (0, 4, 1, 16),
        (0, 4, 16, 16),
        (0, 4, 17, 16),
        (2, 3, 33, 16),
        (2, 3, 32, 16),
        (1, 2, 80, 16),
        (0, 0, 1, 8),
    ]
    cases += [(int(h), int(f), int(t), int(s)) for h, f, t, s in rng.integers(1, (5, 7, 90, 20), (20, 4))]
    for has, count, tokens, size in cases:
        blocks, free = list(range(100, 100 + has)), list(range(count))
        where = f"grow({blocks}, {free}, tokens={tokens}, size={size})"
        given, pool = list(blocks), list(free)
        got = called(answer, where, given, pool, tokens, size)
        missing = max(0, -(-tokens // size) - has)
        right = missing <= count
        if not isinstance(got, int | np.bool_ | np.integer) or got != right:
            expected = f"{right}: {missing} more needed, {count} free"
            raise CheckFailed("grow returns the wrong value.", expected=expected, got=repr(got), where=where)
        taken = len(given) - has
        if sorted(given + pool) != sorted(blocks + free) or given[:has] != blocks:
            look_at = "each block lies in one of the two lists: one that is taken leaves `free`"
            raise CheckFailed(
                "grow loses a block, or gives one to two.",
                got=f"blocks {given}, free {pool}",
                where=where,
                look_at=look_at,
            )
        if taken != (missing if right else 0):
            look_at = "how many blocks hold so many tokens, and how many of them the request has"
            expected = f"{missing if right else 0} taken"
            raise CheckFailed(
                "grow takes the wrong number of blocks.",
                expected=expected,
                got=f"{taken} taken",
                where=where,
                look_at=look_at,
            )
    print(f"grow: right for {len(cases)} requests, seed {seed}.")
    return draw_generated(generate(drawn(20, seed, rate=0.5), Engine(), Memory(16, 16), answer), 16)


def draw_generated(made: Generated, blocks: int) -> Figure:
    """Draw requests down, time across: when each waits, reads its text, generates; below, how many blocks are held."""
    most = max(used for *_, used in made.steps)
    title = (
        f"{len(made.requests)} requests hold at most {most} of {blocks} blocks; {made.preempted} starts anew\n"
        f"first token after {np.mean(made.first_token):.1f} on average, then one each {np.mean(made.per_token):.2f}"
    )
    with chart(2, 1, figsize=(7.6, 3.6), sharex=True, height_ratios=(2, 1)) as (figure, (above, below)):
        for number, request in enumerate(made.requests):
            ran = [number in running for _, _, running, _ in made.steps]
            spans = {PALE: [(request.arrival, made.end[number] - request.arrival)], ORANGE: [], BLUE: []}
            for (begin, end, *_), now, before in zip(made.steps, ran, (False, *ran), strict=False):
                if now:
                    spans[BLUE if before else ORANGE].append((begin, end - begin))
            for colour, found in spans.items():
                above.broken_barh(found, (number - 0.4, 0.8), color=colour, lw=0)
        edges = [begin for begin, *_ in made.steps] + [made.steps[-1][1]]
        below.stairs([used for *_, used in made.steps], edges, fill=True, color=BLUE)
        below.axhline(blocks, color=GREY, lw=1)
        handles = [Patch(color=c, label=what) for c, what in ((PALE, "waits"), (ORANGE, "reads"), (BLUE, "generates"))]
        above.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        above.set(ylim=(len(made.requests) - 0.4, -0.6), ylabel="request")
        below.set(xlim=(0, 1.02 * edges[-1]), ylim=(0, 1.15 * blocks), ylabel="blocks", xlabel="time")
        for ax in (above, below):
            ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        finish(figure, below, "")
        finish(figure, above, title)
    return figure
