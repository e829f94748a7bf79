"""A batcher and its engines in virtual time: requests arrive at given moments, a batch of n takes a given time.

    served = serve(Batcher(limits), poisson(rate=200, count=1000, seed=1), lambda n: 0.004 + 0.0005 * n)
    served.latency, served.batches

It drives anything with `offer`, `due` and `take`, so the code that serves is the code that is simulated. No clock is
read: the same arrivals give the same result, on any machine.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


class Rules(Protocol):
    """What decides when which requests leave together: `batcher.Batcher`, or a learner's own."""

    def offer(self, request: Any, now: float) -> bool: ...
    def due(self) -> float | None: ...
    def take(self, now: float) -> list[Any]: ...


@dataclass(frozen=True)
class Batch:
    """Requests, by their number, that an engine answered together from `start` to `end`; it was idle since `idle`."""

    requests: tuple[int, ...]
    start: float
    end: float
    engine: int
    idle: float


@dataclass(eq=False)
class Served:
    """What happened. Requests are numbered in the order of their arrival.

    `arrivals`: seconds, shape (requests,). `refused`: numbers of those that were turned away. `waiting`: how many
    waited when each request came, shape (requests,). `stuck`: why the simulation ended early, or "".
    """

    arrivals: np.ndarray
    batches: list[Batch] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    waiting: np.ndarray = field(default_factory=lambda: np.empty(0, int))
    stuck: str = ""

    @property
    def wait(self) -> np.ndarray:
        """Return seconds from arrival until its batch started, shape (requests,); NaN for those without a batch."""
        return self._by_request(lambda batch: batch.start) - self.arrivals

    @property
    def latency(self) -> np.ndarray:
        """Return seconds from arrival until the answer, shape (requests,); NaN for those without one."""
        return self._by_request(lambda batch: batch.end) - self.arrivals

    @property
    def seconds(self) -> float:
        """From 0 until the last answer or arrival."""
        return max([batch.end for batch in self.batches] + self.arrivals[-1:].tolist(), default=0.0)

    @property
    def throughput(self) -> float:
        """Return answers per second."""
        return sum(len(batch.requests) for batch in self.batches) / self.seconds if self.batches else 0.0

    @property
    def mean_batch(self) -> float:
        """Return requests per batch; NaN if there was no batch."""
        return float(np.mean([len(batch.requests) for batch in self.batches])) if self.batches else math.nan

    @property
    def busy(self) -> float:
        """Return the part of the time in which an engine worked, for one engine."""
        return sum(batch.end - batch.start for batch in self.batches) / self.seconds if self.batches else 0.0

    def _by_request(self, value: Callable[[Batch], float]) -> np.ndarray:
        found = np.full(len(self.arrivals), np.nan)
        for batch in self.batches:
            found[[r for r in batch.requests if 0 <= r < len(found)]] = value(batch)
        return found


def poisson(rate: float, count: int, seed: int) -> np.ndarray:
    """Return moments of `count` arrivals of a Poisson process, `rate` per second, in seconds from 0. Shape (count,)."""
    return np.random.default_rng(seed).exponential(1 / rate, count).cumsum()


def serve(rules: Rules, arrivals: Sequence[float], seconds: Callable[[int], float], engines: int = 1) -> Served:
    """Let requests come at `arrivals`, in order, and an idle engine ask the rules for a batch whenever one is due.

    `seconds(n)`: what a batch of n takes. A request that comes at the moment when a batch is due comes first. Rules
    that call a batch due and give none, or one without waiting requests, stop the simulation: `stuck` says so.
    """
    arrivals = np.asarray(arrivals, float)
    served = Served(arrivals, waiting=np.zeros(len(arrivals), int))
    idle = [0.0] * engines  # since when, or from when on, each engine is idle
    waiting: set[int] = set()
    now, coming = 0.0, 0
    while True:
        due = rules.due()
        engine = int(np.argmin(idle))
        take_at = math.inf if due is None else max(due, idle[engine], now)
        if coming < len(arrivals) and arrivals[coming] <= take_at:
            now = float(arrivals[coming])
            served.waiting[coming] = len(waiting)
            if rules.offer(coming, now):
                waiting.add(coming)
            else:
                served.refused.append(coming)
            coming += 1
        elif take_at < math.inf:
            now = take_at
            batch = tuple(rules.take(now))
            if not batch or not set(batch) <= waiting:
                served.stuck = _stuck(batch, due, now)
                return served
            served.batches.append(Batch(batch, now, now + seconds(len(batch)), engine, idle[engine]))
            idle[engine] = served.batches[-1].end
            waiting -= set(batch)
        else:
            return served


def _stuck(batch: tuple[Any, ...], due: float | None, now: float) -> str:
    if not batch:
        return f"due() said {due:g} s, but take({now:g}) gave no request: the engine would ask for ever"
    return f"take({now:g}) gave {batch}, of which some do not wait: they were taken before, refused, or never offered"
