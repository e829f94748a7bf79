"""Live bytes of a TensorFlow step: every tensor that an operation makes, from its birth until nobody holds it.

    with Tracker() as tracker:
        with tf.GradientTape() as tape:
            loss = ...
        tape.gradient(loss, weights)
    tracker.peak, tracker.events

In eager mode an operation's results are objects of Python, and what the tape saves for the backward pass it keeps by
holding these. So a callback after each operation sees every result, and a finalizer sees it go. Tensors that share
memory (reshapes, identities) count once, by address; on a GPU, whose addresses TensorFlow does not show, each counts
for itself. Not counted: what existed before (name it in `before` if an operation may hand its memory on, as
`tf.stop_gradient` does), the weights themselves (reading a variable hands over its own memory), and what a kernel needs
while it runs. A graph's tensors are not seen: leave `tf.function` out of what is tracked.

The hook is TensorFlow's own, that of `tf.debugging.experimental.enable_dump_debug_info`, and no public name leads to
it; `tests/labs/08_recomputation/test_tape.py` holds it to counts by hand.
"""

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kernels.recomputation.framework import op_callbacks, tf

READS = "ReadVariableOp"
NO_NUMBERS = (tf.resource, tf.string, tf.variant)


@dataclass(frozen=True)
class Event:
    """`live` bytes after `operation` made its results, or, if that is "", after some were freed."""

    operation: str
    live: int


class Tracker:
    """Count live bytes while it is entered.

    `least`: bytes below which a tensor is left out, such as a loss. `before`: tensors that exist already and outlive
    the tracker; whatever shares their memory is not counted.
    """

    def __init__(self, least: int = 1024, before: Iterable[Any] = ()) -> None:
        self.events: list[Event] = []
        self.live = 0
        self.peak = 0
        self._least = least
        self._before = frozenset(map(_address, before))
        self._holders: dict[int, list[int]] = {}  # by address: [bytes, tensors that hold them]

    def __enter__(self) -> "Tracker":
        op_callbacks.add_op_callback(self._made)
        return self

    def __exit__(self, *failure: Any) -> None:
        op_callbacks.remove_op_callback(self._made)

    def count(self, operation: str) -> int:
        """Return how many operations of that type have run, such as "MatMul"."""
        return sum(event.operation == operation for event in self.events)

    def _made(
        self, operation: str, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        if graph is not None:
            return
        for tensor in outputs if operation != READS else ():
            self._hold(tensor)
        self.peak = max(self.peak, self.live)
        self.events.append(Event(operation, self.live))

    def _hold(self, tensor: Any) -> None:
        if tensor.dtype in NO_NUMBERS:
            return
        nbytes = tensor.shape.num_elements() * tensor.dtype.size
        if nbytes < self._least:
            return
        address = _address(tensor)
        if address in self._before:
            return
        if address not in self._holders:
            self._holders[address] = [nbytes, 0]
            self.live += nbytes
        self._holders[address][1] += 1
        weakref.finalize(tensor, self._gone, address)

    def _gone(self, address: int) -> None:
        held = self._holders[address]
        held[1] -= 1
        if not held[1]:
            del self._holders[address]
            self.live -= held[0]
            self.events.append(Event("", self.live))


def _address(tensor: Any) -> int:
    """Return where the tensor's numbers are; for one on a GPU, a number that no other tensor has while it lives."""
    if not tensor.device.endswith("CPU:0"):
        return -id(tensor)
    return tensor._numpy_internal().__array_interface__["data"][0]  # a view; tensor.numpy() would copy
