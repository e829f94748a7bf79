"""The formulas of queues against the queue in virtual time: within four standard errors, from independent runs."""

import math

import numpy as np
import pytest

from kernels.serving import queueing
from kernels.serving.batcher import Batcher, Limits
from kernels.serving.simulated_queue import poisson, serve

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


@pytest.mark.parametrize("utilisation", [0.3, 0.7])
def test_one_request_at_a_time(utilisation):
    rng, rate, limits = np.random.default_rng(SEED), 100.0, Limits(1, 0.0, 10**6)
    mean = utilisation / rate
    uniform = mean * 0.5, mean * 1.5
    cases = {
        "M/D/1": (queueing.md1(rate, mean), lambda n: mean),
        "M/M/1": (queueing.mm1(rate, mean), lambda n: rng.exponential(mean)),
        "M/G/1": (queueing.mg1(rate, mean, mean**2 / 12), lambda n: rng.uniform(*uniform)),
    }
    for name, (queue, seconds) in cases.items():
        runs = replicate(rate, seconds, limits)
        assert agrees(runs[:, 0], queue.wait), (name, runs[:, 0].mean(), queue.wait)
        assert agrees(runs[:, 1], queue.latency), (name, runs[:, 1].mean(), queue.latency)
        assert queue.utilisation == pytest.approx(utilisation)
        assert queue.inside == pytest.approx(rate * queue.latency)
    assert cases["M/M/1"][0].wait == pytest.approx(2 * cases["M/D/1"][0].wait)
    # The check can fail: the formula of another queue does not pass it.
    assert not agrees(runs[:, 0], queueing.mm1(rate, mean).wait)


def test_the_percentile_of_mm1():
    rng = np.random.default_rng(SEED)
    queue = queueing.mm1(100, 0.005)
    assert queueing.mm1_percentile(100, 0.005, 99) == pytest.approx(math.log(100) * queue.latency)
    beyond = []
    for run in range(RUNS):
        served = serve(Batcher(Limits(1, 0.0, 10**6)), poisson(100, COUNT, 50 + run), lambda n: rng.exponential(0.005))
        beyond.append((served.latency[STEADY] > queueing.mm1_percentile(100, 0.005, 90)).mean())
    assert agrees(np.array(beyond), 0.1)


def seconds_of(n):
    return 0.003 + 0.0001 * n


@pytest.mark.parametrize(
    ("rate", "batch_limit", "capacity"),
    [(150, 1, 64), (400, 1, 32), (500, 8, 64), (1800, 8, 64), (2500, 8, 16), (4000, 32, 64), (7000, 32, 48)],
)
def test_batches(rate, batch_limit, capacity):
    queue = queueing.batches(rate, seconds_of, batch_limit, capacity)
    runs = replicate(rate, seconds_of, Limits(batch_limit, 0.0, capacity))
    for column, expected in enumerate((queue.wait, queue.latency, queue.refused, queue.mean_batch)):
        assert agrees(runs[:, column], expected), (column, runs[:, column].mean(), expected)
    assert queue.throughput == pytest.approx(rate * (1 - queue.refused), rel=1e-6)
    assert queue.batch_sizes.sum() == pytest.approx(1)
    assert queue.batch_sizes @ np.arange(1, batch_limit + 1) == pytest.approx(queue.mean_batch)
    assert queue.waiting == pytest.approx(queue.throughput * queue.wait)


def test_batches_of_one_are_md1():
    queue, formula = queueing.batches(200, seconds_of, 1, 200), queueing.md1(200, seconds_of(1))
    for name in ("utilisation", "wait", "latency", "waiting", "inside"):
        assert getattr(queue, name) == pytest.approx(getattr(formula, name), rel=1e-6)
    assert queue.refused == pytest.approx(0, abs=1e-9)


def test_full_batches_are_the_most_that_can_be_answered():
    queue = queueing.batches(50_000, seconds_of, 32, 64)
    assert queue.throughput == pytest.approx(queueing.most(seconds_of, 32))
    assert queue.mean_batch == pytest.approx(32)
    assert queue.utilisation == pytest.approx(1)


def test_more_than_can_be_served_waits_for_ever():
    queue = queueing.mm1(100, 0.01)
    assert queue.utilisation == 1
    assert queue.wait == queue.waiting == math.inf
    assert queueing.md1(0, 0.01).wait == 0
    assert queueing.little(200, 0.05) == 10


def test_measured_times_are_those_of_the_size_that_the_batch_runs_in():
    seconds = queueing.measured([{"batch": 8, "seconds": 3.0}, {"batch": 1, "seconds": 1.0}])
    assert [seconds(n) for n in (1, 2, 8)] == [1.0, 3.0, 3.0]
    with pytest.raises(ValueError, match="a batch of 9 was not measured; the largest is 8"):
        seconds(9)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: queueing.mg1(-1, 1, 0), "rate is -1"),
        (lambda: queueing.mg1(1, 0, 0), "a mean above 0"),
        (lambda: queueing.batches(0, seconds_of, 1, 1), "must be above 0 and finite"),
        (lambda: queueing.batches(1, seconds_of, 4, 3), "need 1 <= batch_limit <= capacity"),
    ],
)
def test_what_is_no_queue(call, reason):
    with pytest.raises(ValueError, match=reason):
        call()
