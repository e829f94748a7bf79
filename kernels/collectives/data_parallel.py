"""Data-parallel SGD: k ranks hold the same network, each computes the gradient of its part of the batch, an all-reduce
averages the gradients, and all take the same step: that of a single device with the whole batch, to rounding.

On GPUs, overlapped: data_parallel_gpu.py. The lesson's `train` has all ranks in one process.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.collectives.perceptron import Perceptron, clusters


@dataclass(frozen=True)
class Task:
    """What is trained: a perceptron of `sizes` on `batch` points per step, for `steps` steps at `rate`."""

    sizes: tuple[int, ...] = (32, 64, 64, 10)
    batch: int = 64
    steps: int = 20
    rate: float = 0.1
    seed: int = 1

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Return points and classes of all steps."""
        return clusters(self.batch * self.steps, self.sizes[0], self.sizes[-1], self.seed)

    def part(self, step: int, rank: int, ranks: int) -> slice:
        """Return the points that a rank takes in a step. Raise ValueError if the batch cannot be shared out equally."""
        if self.batch % ranks:
            raise ValueError(
                f"a batch of {self.batch} cannot be shared out equally to {ranks} ranks, whose gradients are averaged; "
                f"take a multiple of {ranks}"
            )
        points = self.batch // ranks
        start = step * self.batch + rank * points
        return slice(start, start + points)


def train_alone(task: Task) -> tuple[list[np.ndarray], list[float]]:
    """Return the layers' parameters after training on one device with the whole batch, and the loss of each step."""
    x, labels = task.data()
    network, losses = Perceptron(task.sizes, task.seed), []
    for step in range(task.steps):
        part = task.part(step, 0, 1)
        losses.append(float(network.backward(x[part], labels[part])))
        for layer in range(len(network.gradients)):
            network.step(layer, task.rate)
    return network.parameters, losses


def difference(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Return ||one - other|| / ||one|| over all layers."""
    a, b = (np.concatenate([layer.ravel() for layer in layers]).astype(np.float64) for layers in (one, other))
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))
