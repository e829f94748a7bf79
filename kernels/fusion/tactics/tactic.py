"""`Tactic`: one way to run layers of some operators, and `Call`, one launch bound to its arrays.

A tactic says what it refuses and why, lays out a layer's weights as its kernels read them, and binds its kernels to
arrays. The engine calls what `bind` returns, again and again.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.fusion.tactics.layer import Layer
from warpcourse.bench.lab_kernels import Kernel, Size, launch

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class KernelLaunch:
    """A lab's kernel, its grid and block, and the arguments that it is bound to. `early`: as `CubinKernel` takes it."""

    kernel: Any  # what has `function`: a `Kernel`, or one for Hopper
    grid: Size
    block: int
    arguments: tuple
    shared_bytes: int = 0
    early: bool = False

    @functools.cached_property
    def function(self) -> Any:
        """Return the compiled kernel."""
        return self.kernel.function()

    def queue(self) -> None:
        """Queue it on the current stream."""
        if self.early:
            self.function(self.grid, (self.block,), self.arguments, self.shared_bytes, early=True)
        else:
            launch(self.function, self.grid, self.block, self.arguments, self.shared_bytes)


@dataclass(frozen=True)
class Call:
    """What the engine runs for a layer: mostly one launch, bound to its arrays.

    `kernel`: its name, for reports. `queue()` queues it on the current stream. `launch`: of a kernel of this lab, None
    for others.
    """

    kernel: str
    queue: Callable[[], None]
    launch: KernelLaunch | None = None

    def compile(self) -> None:
        """Compile the kernel, so that `queue` need not; nothing happens where `queue` alone knows what it runs."""
        if self.launch is not None:
            _ = self.launch.function


@dataclass(frozen=True)
class Tactic:
    """One way to run layers of some operators.

    `refuses(layer)`: why it cannot run a layer, "" if it can. `weights(layer)`: host arrays as its kernels read them.
    `bind(layer, inputs, outputs, weights)`: the launches. `inputs`: device arrays of the tensors read; `outputs`: of
    the tensors written, whole, one for each slice; shaped (batch, *shape), images in the tensor's layout. `weights`:
    the device copies of what `weights(layer)` gave, under the same names. `capability`: least compute capability, 80
    for 8.0. `sort`: how early the default choice takes it, the smallest first; None: only tuning does.
    """

    name: str
    ops: tuple[str, ...]
    refuses: Callable[[Layer], str]
    weights: Callable[[Layer], dict[str, np.ndarray]]
    bind: Callable[[Layer, Sequence[Any], Sequence[Any], Arrays], list[Call]]
    capability: int = 0
    sort: Callable[[Layer], float] | None = None


def call(kernel: Kernel, grid: Size, block: int, arguments: tuple) -> Call:
    """Return one launch of a kernel of this lab. `arguments`: None is a null pointer."""
    # A number, because not every version of CuPy takes None for an argument.
    made = KernelLaunch(kernel, grid, block, tuple(np.uint64(0) if a is None else a for a in arguments))
    return Call(kernel.name, made.queue, made)
