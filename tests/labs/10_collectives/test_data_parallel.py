"""Data-parallel SGD: the ranks' weights are those of one device with the whole batch."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.collectives.data_parallel import Task, train_alone
from kernels.collectives.perceptron import Perceptron, clusters


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


def test_a_batch_that_cannot_be_shared_out_is_refused():
    with pytest.raises(ValueError, match="a batch of 64 cannot be shared out equally to 3 ranks"):
        Task().part(0, 0, 3)
