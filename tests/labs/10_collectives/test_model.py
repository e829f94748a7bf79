"""The alpha-beta model: closed forms against the schedules' own times, the best S, fits, and the earlier readings."""

import importlib
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.collectives import bandwidth, measurements, model
from kernels.collectives.model import ALGORITHMS, Link
from kernels.collectives.schedule import check_schedule

ring_readings = importlib.import_module("tests.labs.10_collectives.ring_readings")

LINK = Link(3e-6, 200e9)
LINKS = st.builds(Link, st.floats(1e-8, 1e-3), st.floats(1e8, 1e12))
SIZES = st.floats(1, 1e11)
POWERS = (2, 4, 8, 16)


def schedule_time(schedule, n, link):
    """The sum of the longest message of each step: seconds of a schedule for n bytes, all links alike."""
    return sum(max(link.seconds(s.count * n / schedule.slices) for s in sends) for sends in schedule.by_step() if sends)


@pytest.mark.parametrize(
    ("name", "k"),
    [
        (name, k)
        for name in ALGORITHMS
        for k in (1, 2, 3, 4, 5, 7, 8, 12, 16)
        if "doubling" not in name or not k & (k - 1)
    ],
)
def test_a_formula_is_the_time_of_its_schedule(name, k):
    algorithm = ALGORITHMS[name]
    for slices in (k, 2 * k, 16 * k):
        schedule = algorithm.schedule(k, slices)
        assert schedule.collective == algorithm.collective
        check_schedule(schedule)
        for n in (1, 1e6, 1e10):
            computed = schedule_time(schedule, n, LINK)
            if name == "tree all-reduce" and slices < 2 * (k - 1).bit_length() + 2:
                assert computed <= algorithm.time(n, k, slices, LINK) * (1 + 1e-12)
            else:
                assert computed == pytest.approx(algorithm.time(n, k, slices, LINK), rel=1e-12)


def test_the_ring_broadcast_is_the_talks_formula():
    """Without a cost per message: (k - 1)N/B whole, N(S + k - 2)/(SB) in slices, N/B in the limit."""
    free = Link(0, 12e9)
    n, k = 1.2e9, 4
    assert model.ring_broadcast(n, k, 1, free) == pytest.approx(0.3)
    assert model.ring_broadcast(n, k, 10, free) == pytest.approx(n * 12 / (10 * 12e9))
    assert model.best_ring_broadcast(n, k, free) == pytest.approx(0.1)
    assert model.best_slices(n, k, free) == math.inf


@given(SIZES, st.integers(2, 64), LINKS)
def test_no_number_of_slices_is_better_than_the_best(n, k, link):
    best = model.best_slices(n, k, link)
    least = model.ring_broadcast(n, k, best, link)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2):
        if best * factor >= 1:
            assert model.ring_broadcast(n, k, best * factor, link) >= least * (1 - 1e-12)
    assert model.best_ring_broadcast(n, k, link) == pytest.approx(least)
    if best > 1:
        closed = (math.sqrt(n / link.bandwidth) + math.sqrt((k - 2) * link.alpha)) ** 2
        assert least == pytest.approx(closed, rel=1e-9)


@given(SIZES, st.integers(3, 64), LINKS)
def test_beyond_the_best_the_time_rises_towards_alpha_per_slice(n, k, link):
    best = max(1.0, model.best_slices(n, k, link))
    times = [model.ring_broadcast(n, k, best * factor, link) for factor in (1, 2, 4, 8, 16)]
    assert times == sorted(times)
    far = best * 1e6 + n / link.bandwidth / link.alpha * 1e6
    assert model.ring_broadcast(n, k, far, link) == pytest.approx(far * link.alpha, rel=1e-3)


@pytest.mark.parametrize("name", ["binary tree broadcast", "tree all-reduce"])
@pytest.mark.parametrize("k", [5, 8, 64])
def test_pipelined_trees_have_a_best_number_of_slices_too(name, k):
    algorithm = ALGORITHMS[name]
    best = algorithm.slices(1e8, k, LINK)
    least = algorithm.best_time(1e8, k, LINK)
    assert best > 1
    assert all(algorithm.time(1e8, k, best * factor, LINK) >= least for factor in (0.5, 0.9, 1.1, 2))


@given(SIZES, st.sampled_from(POWERS), LINKS)
def test_what_wins_depends_on_the_size(n, k, link):
    """Recursive doubling has the fewest messages, rings and halving the fewest bytes; nothing beats either bound."""
    times = {name: a.best_time(n, k, link) for name, a in ALGORITHMS.items() if a.collective == "all-reduce"}
    messages = math.log2(k) * link.alpha
    bytes_ = 2 * (k - 1) / k * n / link.bandwidth
    assert min(times.values()) >= max(messages, bytes_) * (1 - 1e-12)
    assert times["halving and doubling"] <= times["ring all-reduce"] * (1 + 1e-12)


def test_a_link_of_negative_cost_is_refused():
    with pytest.raises(ValueError, match=r"alpha ≥ 0 s and bandwidth > 0 bytes/s, not -1 and 1"):
        Link(-1, 1)


# --- Recorded on four H200 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(1, 256), (1, 64), (8, 64), (4, 256), (8, 256)])
def test_two_readings_on_four_gpus_predict_the_others_within_5_percent(first, second):
    found = ring_readings.check(4, first, second)
    assert found.errors[first] == pytest.approx(0, abs=1e-9)
    assert found.errors[second] == pytest.approx(0, abs=1e-9)
    assert found.worst < 0.05
    assert 3.5e-6 < found.link.alpha < 5.5e-6
    assert 385e9 < found.link.bandwidth < 400e9
    best = model.best_slices(measurements.N, 4, found.link)
    assert 30 <= best <= 40  # the fastest of those measured is S = 32


def test_two_readings_of_few_slices_do_not_predict_many():
    """There the time is nearly all bytes, and what is left for alpha is the error of the reading."""
    assert ring_readings.check(4, 1, 2).worst > 0.5
    assert ring_readings.check(4, 4, 8).worst > 0.1
    pairs = list(combinations(measurements.SLICES, 2))
    beyond = {pair for pair in pairs if ring_readings.check(4, *pair).worst > 0.10}
    assert beyond == {(1, 2), (1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (2, 16), (4, 8)}


def test_a_fit_on_two_gpus_is_not_that_on_four():
    """Alpha of a rank that only sends is less than that of ranks in the middle; B is the same."""
    two, four = ring_readings.check(2, 8, 256), ring_readings.check(4, 8, 256)
    assert two.worst < 0.03
    assert two.link.bandwidth == pytest.approx(four.link.bandwidth, rel=0.02)
    assert four.link.alpha > 1.5 * two.link.alpha
    assert ring_readings.curve(4)[256] / model.ring_broadcast(measurements.N, 4, 256, two.link) - 1 > 0.10


# --- Bandwidths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ring broadcast", "ring reduce-scatter", "ring all-gather", "ring all-reduce"])
@pytest.mark.parametrize("k", [2, 3, 8])
def test_bus_bandwidth_of_a_ring_is_that_of_its_links(name, k):
    algorithm, free = ALGORITHMS[name], Link(0, 40e9)
    slices = 10**7 * k if name == "ring broadcast" else k
    seconds = algorithm.time(1e9, k, slices, free)
    assert bandwidth.bus_bandwidth(algorithm.collective, 1e9, seconds, k) == pytest.approx(40e9, rel=1e-5)


def test_factors_are_those_of_nccl_tests():
    found = {name: bandwidth.bus_factor(name, 4) for name in bandwidth.FACTORS}
    assert found == {"all-reduce": 1.5, "reduce-scatter": 0.75, "all-gather": 0.75, "broadcast": 1, "reduce": 1}
    assert bandwidth.bus_factor("all-reduce", 1) == 0
    assert bandwidth.algorithm_bandwidth(1e9, 0.01) == 1e11


def test_bandwidths_of_nothing_are_refused():
    with pytest.raises(ValueError, match="there is no collective 'gather'; choose one of all-reduce"):
        bandwidth.bus_factor("gather", 4)
    with pytest.raises(ValueError, match="a collective has at least one rank, not 0"):
        bandwidth.bus_factor("reduce", 0)
    with pytest.raises(ValueError, match="takes more than no time, not 0 s"):
        bandwidth.algorithm_bandwidth(1e9, 0)


def test_the_curve_over_s_rises_and_falls():
    link = ring_readings.check(4, 1, 256).link
    found = np.array([1 / model.ring_broadcast(2**30, 4, 2**i, link) for i in range(13)])
    peak = int(found.argmax())
    assert 0 < peak < 12
    assert (np.diff(found[: peak + 1]) > 0).all()
    assert (np.diff(found[peak:]) < 0).all()
