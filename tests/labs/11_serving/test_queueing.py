"""The formulas of queues against the queue in virtual time: within four standard errors, from independent runs."""

import math

import numpy as np
import pytest

from kernels.serving.serve.batching import queueing
from kernels.serving.serve.batching.batcher import Batcher, Limits
from kernels.serving.serve.batching.simulated_queue import poisson, serve

# Runs are seeded: in one of a thousand comparisons a right formula would be four standard errors off by chance.
RUNS, COUNT, SEED = 16, 3000, 2017
STEADY = slice(600, 2700)  # requests after the beginning, when the queue is still empty, and before the last ones


def replicate(rate, seconds, limits):
    """Of `RUNS` independent runs: wait and latency of those that were answered, refused part, mean batch; (RUNS, 4)."""
    found = []
    for run in range(RUNS):
        served = serve(Batcher(limits), poisson(rate, COUNT, SEED + run), seconds)
        wait, latency = served.wait[STEADY], served.latency[STEADY]
        sizes = [len(b.requests) for b in served.batches if STEADY.start <= b.requests[0] < STEADY.stop]
        found.append((np.nanmean(wait), np.nanmean(latency), np.isnan(latency).mean(), np.mean(sizes)))
    return np.array(found)


def agrees(runs, expected):
    error = runs.std(ddof=1) / math.sqrt(len(runs))
    return abs(runs.mean() - expected) <= 4 * error + 1e-6 * expected + 1e-8  # what refuses one in a billion never does


def seconds_of(n):
    return 0.003 + 0.0001 * n


@pytest.mark.parametrize(
    ("rate", "batch_limit", "capacity"),
    [(150, 1, 64), (400, 1, 32), (500, 8, 64), (1800, 8, 64), (2500, 8, 16), (4000, 32, 64), (7000, 32, 48)],
)
def test_batches(rate, batch_limit, capacity):
    queue = queueing.long_run(rate, seconds_of, batch_limit, capacity)
    runs = replicate(rate, seconds_of, Limits(batch_limit, 0.0, capacity))
    for column, expected in enumerate((queue.wait, queue.latency, queue.refused, queue.mean_batch)):
        assert agrees(runs[:, column], expected), (column, runs[:, column].mean(), expected)
    assert queue.throughput == pytest.approx(rate * (1 - queue.refused), rel=1e-6)
    assert queue.batch_sizes.sum() == pytest.approx(1)
    assert queue.batch_sizes @ np.arange(1, batch_limit + 1) == pytest.approx(queue.mean_batch)
    assert queue.waiting == pytest.approx(queue.throughput * queue.wait)


def test_batches_of_one_are_md1():
    rate, seconds = 200, seconds_of(1)
    queue, utilisation = queueing.long_run(rate, seconds_of, 1, 200), rate * seconds
    wait = rate * seconds**2 / (2 * (1 - utilisation))  # Pollaczek and Khinchine
    assert queue.utilisation == pytest.approx(utilisation, rel=1e-6)
    assert queue.wait == pytest.approx(wait, rel=1e-6)
    assert queue.latency == pytest.approx(wait + seconds, rel=1e-6)
    assert queue.waiting == pytest.approx(rate * wait, rel=1e-6)  # Little
    assert queue.refused == pytest.approx(0, abs=1e-9)


def test_full_batches_are_the_most_that_can_be_answered():
    queue = queueing.long_run(50_000, seconds_of, 32, 64)
    assert queue.throughput == pytest.approx(32 / seconds_of(32))
    assert queue.mean_batch == pytest.approx(32)
    assert queue.utilisation == pytest.approx(1)


def test_measured_times_are_those_of_the_size_that_the_batch_runs_in():
    seconds = queueing.measured([{"batch": 8, "seconds": 3.0}, {"batch": 1, "seconds": 1.0}])
    assert [seconds(n) for n in (1, 2, 8)] == [1.0, 3.0, 3.0]
    with pytest.raises(ValueError, match="a batch of 9 was not measured; the largest is 8"):
        seconds(9)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: queueing.long_run(0, seconds_of, 1, 1), "must be above 0 and finite"),
        (lambda: queueing.long_run(1, seconds_of, 4, 3), "need 1 <= batch_limit <= capacity"),
    ],
)
def test_what_is_no_queue(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
