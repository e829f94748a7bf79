"""A small network to be trained by SGD: fully connected layers with ReLU, softmax and cross entropy, written for NumPy
and CuPy alike, and a seeded data set for it.

Each layer's parameters lie in one array, weights before biases, and so do its gradients: one message per layer.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

MULTIPLE = 16  # of elements of a layer's array: any number of ranks up to 16 gets equal parts of it


def clusters(n: int, features: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points around one random centre per class, float32 (n, features), and their classes, int64 (n,)."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((classes, features))
    labels = generator.integers(0, classes, n)
    points = centres[labels] + generator.standard_normal((n, features))
    return points.astype(np.float32), labels


def layer_size(inputs: int, outputs: int) -> int:
    """Return elements of a layer's array: weights, biases, and what rounds it up."""
    return -(-(inputs + 1) * outputs // MULTIPLE) * MULTIPLE


@functools.lru_cache(maxsize=2)
def _initial(sizes: tuple[int, ...], seed: int) -> list[np.ndarray]:
    """Return the layers' arrays before training, the same for every rank. Weights scaled as by He et al. (2015)."""
    generator, found = np.random.default_rng(seed), []
    for inputs, outputs in itertools.pairwise(sizes):
        layer = np.zeros(layer_size(inputs, outputs), np.float32)
        weights = generator.standard_normal(inputs * outputs, dtype=np.float32)
        layer[: inputs * outputs] = weights * np.float32(np.sqrt(2 / inputs))
        found.append(layer)
    return found


class Perceptron:
    """Layers of `sizes` units: features first, classes last. `arrays`: NumPy's or CuPy's module.

    `parameters`, `gradients`: a float32 array per layer, first layer first.
    """

    def __init__(self, sizes: Sequence[int], seed: int, arrays: Any = np) -> None:
        self.sizes, self._xp = list(sizes), arrays
        self.parameters = [arrays.array(layer) for layer in _initial(tuple(sizes), seed)]
        self.gradients = [arrays.zeros_like(layer) for layer in self.parameters]

    def _parts(self, flat: Any, layer: int) -> tuple[Any, Any]:
        """Return weights (inputs, outputs) and biases (outputs,) in a layer's array."""
        inputs, outputs = self.sizes[layer : layer + 2]
        weights = flat[: inputs * outputs].reshape(inputs, outputs)
        return weights, flat[inputs * outputs : (inputs + 1) * outputs]

    def backward(self, x: Any, labels: Any) -> Any:
        """Compute `gradients` of the mean loss over a batch; return that loss, an array of one."""
        for _ in self.backward_by_layer(x, labels):
            pass
        return self.loss

    def backward_by_layer(self, x: Any, labels: Any) -> Iterator[int]:
        """Do the same in parts. Yields the number of layers after the forward pass, then each layer, the last one
        first, as soon as its gradient is complete (on a GPU: queued). `loss` is there after the first part.
        """
        xp, last = self._xp, len(self.parameters) - 1
        inputs = [x]
        for layer, flat in enumerate(self.parameters):
            weights, biases = self._parts(flat, layer)
            out = inputs[-1] @ weights
            out += biases
            if layer < last:
                xp.maximum(out, 0, out=out)
            inputs.append(out)
        self.loss, slope = self._loss(inputs.pop(), labels)
        yield last + 1
        for layer in range(last, -1, -1):
            weights_gradient, biases_gradient = self._parts(self.gradients[layer], layer)
            xp.matmul(inputs[layer].T, slope, out=weights_gradient)
            slope.sum(axis=0, out=biases_gradient)
            yield layer
            if layer:
                weights, _ = self._parts(self.parameters[layer], layer)
                slope = slope @ weights.T
                slope *= inputs[layer] > 0

    def _loss(self, scores: Any, labels: Any) -> tuple[Any, Any]:
        xp, n = self._xp, len(labels)
        scores -= scores.max(axis=1, keepdims=True)
        shares = xp.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        rows = xp.arange(n)
        loss = -xp.log(shares[rows, labels]).mean()
        shares[rows, labels] -= 1
        shares /= n
        return loss, shares

    def step(self, layer: int, rate: float) -> None:
        """Move a layer's parameters against its gradient."""
        self.parameters[layer] -= np.float32(rate) * self.gradients[layer]
