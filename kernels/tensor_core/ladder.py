"""The six steps of lab 05 by name, how they are compiled and launched. `product.multiply` checks arguments."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.tensor_core import tiles
from warpcourse.bench import hopper
from warpcourse.bench.lab_kernels import Sources, by_name, launch

SOURCES = Sources(__package__, cuda_headers=True)
TYPES = {"float16": "half", "float32": "float", "uint16": "__nv_bfloat16"}  # of C, in CUDA C++


@dataclass(frozen=True)
class Step:
    """One kernel. `tile`: rows and columns of C that a block computes; `threads`: of a block.

    `multiples`: what m, n and k must be multiples of; `alignment`: bytes, of the arrays' addresses; `shared_bytes`: of
    a block's memory for tiles, 0 where `tiles` says. `hopper`: needs a GPU of compute capability 9.0, or the simulator.
    """

    number: int
    name: str
    tile: tuple[int, int]
    threads: int
    multiples: tuple[int, int, int]
    alignment: int = 16
    shared_bytes: int = 0
    hopper: bool = False

    @property
    def file(self) -> str:
        return f"{self.number}_{self.name}.cu"

    @property
    def source(self) -> str:
        """Return the source text, CUDA C++."""
        return SOURCES.text(self.file)

    def function(self, dtype: Any = np.float32) -> Any:
        """Return the compiled kernel of the active backend, for results of a type in TYPES."""
        return _function(self.file, f"tensor_core_{self.name}<{TYPES[np.dtype(dtype).name]}>", self.shared_bytes)

    def grid(self, m: int, n: int) -> tuple[int, ...]:
        """Return blocks, as (x, y), for a product of m × n."""
        return math.ceil(n / self.tile[1]), math.ceil(m / self.tile[0])

    def launch(self, a: Any, b: Any, c: Any) -> None:
        """Queue the kernel, without any check; shapes and addresses must be as `multiples` and `alignment` say."""
        arguments = a, b, c, *map(np.int32, (*c.shape, a.shape[1]))
        function = self.function(c.dtype)
        launch(function, self.grid(*c.shape), self.threads, arguments, self.shared_bytes)


@dataclass(frozen=True)
class StagesStep(Step):
    """Step 4, a template of several sizes: `tiles.stages()` says which it takes, or `tiles.for_shape` where `by_shape`
    is set; `tile` and `threads` are unused."""

    by_shape: bool = False

    def function(self, dtype: Any = np.float32, sizes: tiles.Stages | None = None) -> Any:
        """Return the kernel for results of a type and for sizes, by default those of `tiles.stages()`."""
        return _stages_function(np.dtype(dtype).name, sizes or tiles.stages())

    def grid(self, m: int, n: int, sizes: tiles.Stages | None = None) -> tuple[int, ...]:
        """Return blocks for a product of m × n."""
        sizes = sizes or tiles.stages()
        return (math.ceil(m / sizes.bm) * math.ceil(n / sizes.bn),)

    def launch(self, a: Any, b: Any, c: Any, sizes: tiles.Stages | None = None) -> None:
        """Queue the kernel, without any check."""
        shape = *c.shape, a.shape[1]
        if self.by_shape and not sizes:
            sizes = tiles.for_shape(*shape, hopper.multiprocessors())
        sizes = sizes or tiles.stages()
        arguments = a, b, c, *map(np.int32, shape)
        function = self.function(c.dtype, sizes)
        launch(function, self.grid(*c.shape, sizes), sizes.threads, arguments, sizes.shared_bytes)


@dataclass(frozen=True)
class TmaStep(Step):
    """Step 5. The kernel gets its operands as tensor maps."""

    def function(self, dtype: Any = np.float32) -> Any:
        """Return the kernel, loaded on the GPU or for the simulator, as `hopper.kernel` gives it."""
        options = (f"-DRESULT={TYPES[np.dtype(dtype).name]}",)
        return hopper.kernel(SOURCES.folder / self.file, f"tensor_core_{self.name}", options)

    def launch(self, a: Any, b: Any, c: Any, function: Any = None) -> None:
        """Queue the kernel, or another `function` like it, without any check."""
        maps = hopper.tensor_map(a, self.tile[0], tiles.DEPTH), hopper.tensor_map(b, tiles.DEPTH, hopper.LINE)
        arguments = *maps, c, *map(np.int32, (*c.shape, a.shape[1]))
        function = function or self.function(c.dtype)
        function(self.grid(*c.shape), (self.threads,), arguments, tiles.TMA_SHARED_BYTES)


@dataclass(frozen=True)
class PersistentStep(Step):
    """Step 6, which is compiled for several sizes: `tiles.persistent()` says which it takes."""

    def function(self, dtype: Any = np.float32, sizes: tiles.Persistent | None = None) -> Any:
        """Return it likewise."""
        sizes = sizes or tiles.persistent()
        options = f"-DRESULT={TYPES[np.dtype(dtype).name]}", *sizes.options
        return hopper.kernel(SOURCES.folder / self.file, f"tensor_core_{self.name}", options)

    def launch(self, a: Any, b: Any, c: Any, sizes: tiles.Persistent | None = None, function: Any = None) -> None:
        """Queue the kernel, or another `function` like it, without any check."""
        sizes = sizes or tiles.persistent()
        line = hopper.LINE_BYTES // c.dtype.itemsize
        maps = (
            hopper.tensor_map(a, self.tile[0], tiles.DEPTH),
            hopper.tensor_map(b, tiles.DEPTH, hopper.LINE),
            hopper.tensor_map(c, hopper.GROUP_ROWS, line),
        )
        arguments = *maps, *map(np.int32, (*c.shape, a.shape[1]))
        function = function or self.function(c.dtype, sizes)
        grid = (sizes.blocks(*c.shape, _resident_blocks(function, sizes, self.threads)),)
        function(grid, (self.threads,), arguments, sizes.shared_bytes)


@functools.cache
def _resident_blocks(function: Any, sizes: tiles.Persistent, threads: int) -> int:
    return sizes.cluster * function.resident_clusters(sizes.cluster, threads, sizes.shared_bytes)


@functools.cache
def _stages_function(dtype: str, sizes: tiles.Stages) -> Any:
    return _function("4_mma_stages.cu", sizes.entry(TYPES[dtype]), sizes.shared_bytes)


@functools.cache
def _function(file: str, instance: str, shared_bytes: int) -> Any:
    """Return an instance of the template in a file, allowed so much shared memory."""
    function = SOURCES.function(file, instance)
    if shared_bytes:
        function.max_dynamic_shared_size_bytes = shared_bytes
    return function


STEPS: dict[str, Step] = by_name(
    Step(1, "wmma", (16, 16), 32, (16, 16, 16), 32),
    Step(2, "wmma_shared", (128, 128), 128, (16, 16, 8), 32, shared_bytes=2 * 2 * (128 * 72 + 64 * 136)),
    Step(3, "mma_swizzled", (128, 128), 128, (1, 8, 8), shared_bytes=2 * 2 * 64 * (128 + 128)),
    StagesStep(4, "mma_stages", (0, 0), 0, (1, 8, 8)),
    TmaStep(5, "wgmma_tma", (128, 256), 256, (1, 8, 8), hopper=True),
    PersistentStep(6, "wgmma_persistent", (128, 256), 384, (1, 8, 8), hopper=True),
)


def step(name: str | int) -> Step:
    """Return the step of that name or number; ValueError names the others."""
    for known in STEPS.values():
        if name in (known.name, known.number):
            return known
    choices = ", ".join(f"{known.number} or {known.name!r}" for known in STEPS.values())
    raise ValueError(f"there is no step {name!r}; choose one of {choices}")
