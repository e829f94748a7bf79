"""What the checks of the lesson need: functions of tensors, as functions that return a number."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.training import digits
from kernels.training.framework import tf
from warplab.launch.kernel_source import is_empty


def as_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, under its own name, with tensors of one element made floats; all else is passed on."""

    def call(*given: Any, **named: Any) -> Any:
        found = function(*given, **named)
        is_tensor = hasattr(found, "numpy") and np.size(found.numpy()) == 1
        return float(np.reshape(found.numpy(), ())) if is_tensor else found

    return _as_written(function, call)


def slope_through(function: Callable[[Any], tuple], loss: Callable[[Any], Any]) -> Callable[[float], Any]:
    """Return x -> the slope at x of loss(y), y being the value of `function` with the gradient that it gives.

    `function` is what `tf.custom_gradient` takes: x -> (value, function from dy to dx). The result has its name, and
    returns None where `function` returns nothing, or no gradient.
    """

    def call(x: float) -> Any:
        if function(tf.constant(x)) is None:
            return None
        there = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(there)
            value = loss(tf.custom_gradient(function)(there))
        slope = tape.gradient(value, there)
        return None if slope is None else float(slope)

    return _as_written(function, call)


def loss_after(train_step: Callable[..., Any], data: digits.Digits) -> Callable[[int], Any]:
    """Return steps -> the last loss of so many steps of `train_step`, traced, from fresh weights, over batches."""

    def call(steps: int) -> Any:
        weights, step, loss = digits.parameters(), tf.function(train_step, autograph=False), None
        for part in np.split(np.arange(steps * digits.BATCH), steps):
            loss = step(weights, data.images[part], data.labels[part])
        return loss

    return _as_written(train_step, as_number(call))


def fed_by(batches: Callable[..., Any]) -> Callable[[str], Any]:
    """Return count -> how many of that there are in two epochs of `batches` of 8 of 50 images, all told apart."""

    def call(count: str) -> Any:
        numbers = np.arange(50)
        made = batches(numbers[:, None].astype(np.float32), numbers, 8)
        if made is None:
            return None
        first, second = ([(x.numpy()[:, 0], y.numpy()) for x, y in made] for _ in range(2))
        order, again = (np.concatenate([y for _, y in epoch]) for epoch in (first, second))
        return {
            "batches of 50 images": len(first),
            "images with another's label": sum(int(np.sum(x != y)) for x, y in first),
            "images twice in an epoch": order.size - np.unique(order).size,
            "epochs in the same order": int(np.array_equal(order, again)),
            "batches of neighbours": sum(bool(np.all(np.diff(y) == 1)) for _, y in first),
        }[count]

    return _as_written(batches, call)


def _as_written(function: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with the name of `function`; checks also ask whether that was written at all."""
    named: Any = functools.wraps(function)(call)
    named._warplab_blank = is_empty(function)
    return named
