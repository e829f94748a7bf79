"""How long requests wait in front of an engine that takes batches, in the long run.

Requests come at random (Poisson), `rate` per second on the average. Times in seconds. There is no formula, but a chain
of states that is solved: how many wait when a batch ends. With batches of one and room for all it is Pollaczek's and
Khinchine's for M/D/1, wait = rate · seconds² / (2 (1 - utilisation)).

Sources: J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961; D. Gross and others, Fundamentals of Queueing
Theory, chapters 1, 2, 3.2 (bulk service) and 5. `simulated_queue` checks it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def measured(times: Sequence[Mapping[str, Any]]) -> Callable[[int], float]:
    """Return seconds of a batch of n from a table of measured ones, rows with "batch" and "seconds".

    n runs in the smallest measured size that holds it, as an engine with prepared sizes does. ValueError beyond.
    """
    sizes = {int(row["batch"]): float(row["seconds"]) for row in times}

    def seconds(n: int) -> float:
        size = min((size for size in sizes if size >= n), default=None)
        if size is None:
            raise ValueError(f"a batch of {n} was not measured; the largest is {max(sizes)}")
        return sizes[size]

    return seconds


@dataclass(frozen=True)
class BatchQueue:
    """A queue in the long run. `utilisation`: the part of the time in which the engine is busy. `wait`: seconds before
    the service; `latency`: with it. `waiting`: requests that wait. `throughput`: answers per second. `refused`: the
    part of the requests that found the queue full. `mean_batch`: requests per batch. `batch_sizes`: the part of the
    batches that holds n + 1 requests, shape (limit,).
    """

    utilisation: float
    wait: float
    latency: float
    waiting: float
    throughput: float
    refused: float
    mean_batch: float
    batch_sizes: np.ndarray


def long_run(rate: float, seconds: Callable[[int], float], batch_limit: int, capacity: int) -> BatchQueue:
    """Solve for an engine that, when idle, takes what waits, up to `batch_limit`; a queue of `capacity` places.

    That is `Batcher` with a wait limit of 0: batches form from what arrives during the batch before. `seconds(n)`: what
    a batch of n takes, always.

    The state is n, how many wait when a batch ends. With n = 0 the engine waits for one request, and takes it. Else it
    takes b = min(n, batch_limit), and n - b stay. While it works, A more come, Poisson with mean rate · seconds(b), and
    those beyond the capacity are refused. So the next state is min(n - b + A, capacity). Solving for the states' shares
    gives the rest: sums over one batch, divided by how long it takes from one batch's end to the next one's.
    """
    if not 0 < rate < math.inf:
        raise ValueError(f"rate is {rate} requests per second; it must be above 0 and finite")
    if not 1 <= batch_limit <= capacity:
        raise ValueError(f"batch_limit is {batch_limit}, capacity {capacity}; need 1 <= batch_limit <= capacity")
    states = np.arange(capacity + 1)
    taken = np.clip(states, 1, batch_limit)  # by state
    stay = np.maximum(states - taken, 0)
    busy = np.array([seconds(n) for n in range(1, batch_limit + 1)])[taken - 1]
    idle = np.where(states == 0, 1 / rate, 0.0)

    arrivals = np.array([_poisson(rate * s, capacity) for s in busy])  # of exactly j = 0 … capacity
    beyond = np.clip(1 - arrivals.cumsum(axis=1), 0, 1)  # of more than j
    moves = np.zeros((capacity + 1, capacity + 1))
    for n in states:
        room = capacity - stay[n]
        moves[n, stay[n] : capacity] = arrivals[n, :room]
        moves[n, capacity] = 1 - arrivals[n, :room].sum()
    share = _long_run(moves)

    cycle = share @ (busy + idle)
    # During a batch, so long do exactly j requests arrive: the chance of more than j, over the rate.
    lasting = beyond / rate
    queue = np.minimum(stay[:, None] + states, capacity)
    rest = busy - lasting.sum(axis=1)  # more than `capacity` have come
    waiting = share @ ((lasting * queue).sum(axis=1) + rest * capacity) / cycle
    full = share @ ((lasting * (queue == capacity)).sum(axis=1) + rest) / cycle

    throughput = share @ taken / cycle
    wait = waiting / throughput  # Little's law, of those that were accepted
    service = share @ (taken * busy) / (share @ taken)  # as a request sees it: large batches hold more of them
    sizes = np.bincount(taken, weights=share, minlength=batch_limit + 1)[1:]
    return BatchQueue(
        utilisation=float(share @ busy / cycle),
        wait=float(wait),
        latency=float(wait + service),
        waiting=float(waiting),
        throughput=float(throughput),
        refused=max(0.0, float(full)),  # sums of rounded numbers
        mean_batch=float(share @ taken),
        batch_sizes=sizes,
    )


def _poisson(mean: float, largest: int) -> np.ndarray:
    """Return the chance of exactly 0, 1, … `largest` arrivals."""
    j = np.arange(largest + 1)
    return np.exp(j * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in j]))


def _long_run(moves: np.ndarray) -> np.ndarray:
    """Return the share of each state in the long run: shares that a move does not change, and whose sum is 1."""
    equations = np.vstack([moves.T - np.eye(len(moves)), np.ones(len(moves))])
    right = np.append(np.zeros(len(moves)), 1.0)
    share = np.linalg.lstsq(equations, right, rcond=None)[0]
    return np.clip(share, 0, 1)
