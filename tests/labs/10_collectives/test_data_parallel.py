"""Data-parallel SGD: the ranks' weights are those of one device with the whole batch."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kernels.collectives import on_virtual_devices
from kernels.collectives.data_parallel import TOLERANCE, Task, difference, train, train_alone, train_over_mpi
from kernels.collectives.perceptron import Perceptron, clusters
from kernels.collectives.recursive import recursive_doubling_all_reduce
from kernels.collectives.ring import ring_all_reduce, ring_broadcast
from kernels.collectives.tree import tree_all_reduce

TASK = Task(steps=10)


def test_gradients_are_those_of_finite_differences():
    x, labels = clusters(20, 6, 4, seed=3)
    network = Perceptron([6, 8, 4], seed=3)
    network.parameters = [layer.astype(np.float64) for layer in network.parameters]
    network.gradients = [np.zeros_like(layer) for layer in network.parameters]
    x = x.astype(np.float64)
    network.backward(x, labels)
    gradients = [layer.copy() for layer in network.gradients]
    checked = 0
    for layer, gradient in enumerate(gradients):
        for i in range(0, (network.sizes[layer] + 1) * network.sizes[layer + 1], 5):
            losses = []
            for shift in (1e-6, -1e-6):
                network.parameters[layer][i] += shift
                losses.append(float(network.backward(x, labels)))
                network.parameters[layer][i] -= shift
            assert gradient[i] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-4, abs=1e-7)
            checked += 1
    assert checked > 15


def test_training_lowers_the_loss():
    _, losses = train_alone(Task())
    assert losses[-1] < losses[0] / 3


@pytest.mark.parametrize(
    "schedule",
    [None, ring_all_reduce(4, 12), tree_all_reduce(4, 3), recursive_doubling_all_reduce(4)],
    ids=["ring", "ring of 12 slices", "tree", "recursive doubling"],
)
def test_four_ranks_end_with_the_weights_of_one_device(schedule):
    reference, losses = train_alone(TASK)
    weights, mean_losses = train(TASK, 4, schedule=schedule)
    for found in weights:
        assert difference(reference, found) < TOLERANCE
        assert all(np.array_equal(one, other) for one, other in zip(weights[0], found, strict=True))
    np.testing.assert_allclose(mean_losses, losses, rtol=1e-4)


def test_two_virtual_devices_end_with_the_weights_of_one():
    task = Task(sizes=(8, 16, 4), batch=16, steps=3)
    reference, _ = train_alone(task)
    weights, _ = train(task, 2, engine=on_virtual_devices.run)
    assert max(difference(reference, found) for found in weights) < TOLERANCE


def test_without_the_sum_the_weights_would_differ():
    reference, _ = train_alone(TASK)
    kept, _ = train(TASK, 4, engine=lambda schedule, arrays: [4 * array for array in arrays])
    assert difference(reference, kept[0]) > 100 * TOLERANCE


def test_four_processes_end_with_the_weights_of_one_device():
    results = train_over_mpi(dataclasses.replace(TASK, steps=4), 4)
    assert len({result["digest"] for result in results}) == 1
    assert 0 < max(result["difference"] for result in results) < TOLERANCE
    assert len({tuple(result["losses"]) for result in results}) == 4  # each had its own part


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="a batch of 64 cannot be shared out equally to 3 ranks"):
        train(TASK, 3)
    with pytest.raises(ValueError, match="a schedule of broadcast over 4 ranks; give an all-reduce over 4"):
        train(TASK, 4, schedule=ring_broadcast(4, 2))
