"""Recomputation in TensorFlow: a chain of equal layers, and a training step through it by a plan.

Layer i is y = tanh(x · w_i). For its backward pass TensorFlow saves x and y, and y is the next layer's x: so a layer
keeps one activation more. Weights are small beside it, so that what is measured is activations.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.recomputation import plan as plans
from kernels.recomputation.framework import tf
from kernels.recomputation.tape import Tracker

WIDTH, BATCH = 64, 4096  # an activation of 1 MiB, weights of 16 KiB
SEED = 8
MIB = 2**20


@dataclass(frozen=True)
class Chain:
    """`x`: (batch, width) float32. `weights`: variables of shape (width, width)."""

    x: Any
    weights: list[Any]

    @property
    def activation_bytes(self) -> int:
        """Return bytes of one layer's output."""
        return self.x.shape.num_elements() * self.x.dtype.size


@dataclass(frozen=True)
class TrackedStep:
    """A step that was run. `gradients`: one per weight. `tracker`: what lived when."""

    loss: float
    gradients: list[Any]
    tracker: Tracker

    @property
    def peak_mib(self) -> float:
        """Return the most that lived at once, gradients included, in MiB."""
        return self.tracker.peak / MIB

    @property
    def evaluations(self) -> int:
        """Return how many layers ran forward."""
        return self.tracker.count("Tanh")


def chain(layers: int, width: int = WIDTH, batch: int = BATCH) -> Chain:
    """Return a chain of random weights, the same in every call; activations keep their size from layer to layer."""
    random = tf.random.Generator.from_seed(SEED)
    x = random.normal((batch, width))
    return Chain(x, [tf.Variable(random.normal((width, width)) * (1.5 / width**0.5)) for _ in range(layers)])


def layer(x: Any, w: Any) -> Any:
    """Return one layer: tanh(x · w)."""
    return tf.tanh(x @ w)


def run(x: Any, *weights: Any) -> Any:
    """Return layers one after another."""
    for w in weights:
        x = layer(x, w)
    return x


def recompute(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return f with the same values and gradients, which keeps its arguments alone and runs again in the backward pass.

    `f`: takes and returns tensors; variables are passed to it, not captured. It must give the same result twice.
    """

    @tf.custom_gradient
    def g(*arguments: Any) -> Any:
        # An outer tape would save what happens inside f; it does not look behind stop_gradient.
        y = f(*map(tf.stop_gradient, arguments))

        def backward(dy: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                again = f(*arguments)
            return tape.gradient(again, arguments, dy)

        return y, backward

    return g


def forward(given: Chain, plan: plans.Plan, by: Callable[[Callable[..., Any]], Callable[..., Any]] = recompute) -> Any:
    """Return the chain's output; `by` recomputes every segment of `plan` but the last."""
    x = given.x
    *again, last = plans.segments(plan, len(given.weights))
    for segment in again:
        x = by(run)(x, *given.weights[segment.start : segment.stop])
    return run(x, *given.weights[last.start : last.stop])


def step(
    given: Chain, plan: plans.Plan = (0,), by: Callable[[Callable[..., Any]], Callable[..., Any]] = recompute
) -> TrackedStep:
    """Return forward and backward pass, tracked. The loss is the mean of the squared outputs."""
    with Tracker() as tracker:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(forward(given, plan, by) ** 2)
        gradients = tape.gradient(loss, given.weights)
    return TrackedStep(float(loss), gradients, tracker)


def cpu_seconds(given: Chain, plan: plans.Plan, runs: int = 5) -> float:
    """Return least processor time, of all threads together, of an untracked step; of the host's work on a GPU."""
    samples = []
    for _ in range(runs):
        start = time.process_time()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(forward(given, plan) ** 2)
        float(tf.reduce_sum(tape.gradient(loss, given.weights)[0]))
        samples.append(time.process_time() - start)
    return min(samples)


def nbytes(tensors: Iterable[Any]) -> int:
    """Return bytes of tensors or variables, TensorFlow's or Keras's."""
    return sum(np.asarray(tensor).nbytes for tensor in tensors)


def largest_difference(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """Return over all gradients, the largest |a - b|."""
    return max(float(tf.reduce_max(tf.abs(a - b))) for a, b in zip(ours, theirs, strict=True))
