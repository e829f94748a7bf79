"""Plans: their peaks and work, the best of them against all of them, and ResNet's layers against known sums."""

import math

import pytest

from kernels.recomputation import plan as plans
from kernels.recomputation import resnet
from tests.support.random_inputs import generator

ALL = 300  # random chains


def equal(layers):
    """(inputs, inside) of a chain whose input does not count."""
    return [0] + [1] * (layers - 1), [1] * layers


def simulated_peak(plan, inputs, inside):
    """The peak by doing it: a step that holds and drops what the model says."""
    parts = plans.segments(plan, len(inputs))
    held = sum(inputs[part[0]] for part in parts)
    most = 0
    for part in reversed(parts):
        most = max(most, held + sum(inside[i] for i in part))
        held -= inputs[part[0]]
    assert held == 0
    return most


def random_chains():
    rng = generator()
    for _ in range(ALL):
        n = int(rng.integers(1, 10))
        yield rng.integers(0, 12, n).tolist(), rng.integers(0, 12, n).tolist()


def test_the_peak_is_that_of_a_simulated_step():
    for inputs, inside in random_chains():
        for plan in plans.every_plan(len(inputs)):
            assert plans.peak(plan, inputs, inside) == simulated_peak(plan, inputs, inside)


def test_no_plan_is_better_than_the_best():
    for inputs, inside in random_chains():
        least = min(plans.peak(plan, inputs, inside) for plan in plans.every_plan(len(inputs)))
        assert plans.peak(plans.best(inputs, inside), inputs, inside) == least


@pytest.mark.parametrize("room", [1, 2, 3, 10, 11, 12])
def test_equal_layers_fill_a_triangle(room):
    """m activations are enough for m (m + 1) / 2 layers, and not for one more."""
    deepest = room * (room + 1) // 2
    for layers, peak in ((deepest, room), (deepest + 1, room + 1)):
        inputs, inside = equal(layers)
        assert plans.peak(plans.best(inputs, inside), inputs, inside) == peak


@pytest.mark.parametrize("root", [2, 3, 8, 12])
def test_even_segments_of_the_square_root_need_twice_the_root_less_one(root):
    n = root**2
    plan = plans.square_root(n)
    assert plans.peak(plan, *equal(n)) == 2 * root - 1
    others = [plans.peak(plans.even(n, length), *equal(n)) for length in range(1, n + 1)]
    assert min(others) == 2 * root - 1
    assert plans.evaluations(plan, n) == 2 * n - root


def test_every_plan_is_there_once():
    found = list(plans.every_plan(6))
    assert len(found) == len(set(found)) == 2**5
    for plan in found:
        assert [i for part in plans.segments(plan, 6) for i in part] == list(range(6))


@pytest.mark.parametrize("layers", [1, 2, 7, 16])
def test_the_bars_of_a_plan_are_its_peak(layers):
    for plan in (*map(lambda k: plans.even(layers, k), range(1, layers + 1)), plans.best(*equal(layers))):
        bars = plans.lifetimes(plan, layers)
        alive = [sum(bar.begin <= tick < bar.end for bar in bars) for tick in range(4 * layers)]
        assert max(alive) == plans.peak(plan, *equal(layers)), plan


@pytest.mark.parametrize("plan", [(), (1,), (0, 2, 2), (0, 4), (0, 3, 1)])
def test_what_is_no_plan_is_refused(plan):
    with pytest.raises(ValueError, match="is no plan for 4 layers; it must begin with 0"):
        plans.segments(plan, 4)


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="inputs has 2 layers and inside 1"):
        plans.peak((0,), [1, 2], [1])
    with pytest.raises(ValueError, match="negative number of bytes"):
        plans.best([1, -1], [1, 1])
    with pytest.raises(ValueError, match="segments of at least one"):
        plans.even(4, 0)


# He and others give no sums; these are the parameters that torchvision 0.15 lists for its ResNets.
@pytest.mark.parametrize(("depth", "weights"), [(50, 25_557_032), (101, 44_549_160), (152, 60_192_808)])
def test_resnets_parameters_are_the_known_ones(depth, weights):
    assert resnet.parameters(depth) == weights


def test_resnets_first_bottleneck_by_hand():
    stem, first, *_ = resnet.blocks(101)
    side = 56 * 56
    # Two tensors behind each of the thin convolutions; behind the wide one its result, the projection's and ReLU's.
    assert first.inside_elements == side * (2 * 64 + 2 * 64 + 256 + 256 + 256)
    assert first.input_elements == side * 64
    assert stem.input_elements == 3 * 224 * 224


def test_resnets_best_plan_beats_even_segments():
    inputs, inside = resnet.bytes_of(resnet.blocks(101), batch=32)
    assert len(inputs) == 34
    best = plans.peak(plans.best(inputs, inside), inputs, inside)
    evens = [plans.peak(plans.even(34, length), inputs, inside) for length in range(1, 35)]
    assert best < min(evens) < plans.kept_all(inputs, inside)
    assert math.isclose(plans.kept_all(inputs, inside), 32 * plans.kept_all(*resnet.bytes_of(resnet.blocks(101))))


def test_what_is_no_resnet_is_refused():
    with pytest.raises(ValueError, match="there is no ResNet-99 here; choose one of 50, 101, 152"):
        resnet.blocks(99)
    with pytest.raises(ValueError, match="must be a multiple of 32"):
        resnet.blocks(101, 100)
