"""The nine steps of lab 04 by name, how they are compiled and launched. `multiply.matmul` checks arguments."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.matmul import tiles
from warpcourse.bench.lab_kernels import Sources, by_name, choose, launch

SOURCES = Sources(__package__, own_headers=(".",))
ALIGNMENT = 16  # bytes, of a float4


@dataclass(frozen=True)
class Step:
    """One kernel. `tile`: rows and columns of C that a block computes; `block`: its threads, as (x, y) or (x,).

    `vectors`: the operands, of "abc", that it reads or writes four words at a time where their rows allow it; "" for a
    kernel with one instance for all shapes.
    """

    number: int
    name: str
    tile: tuple[int, int]
    block: tuple[int, ...]
    vectors: str = ""

    @property
    def file(self) -> str:
        return f"{self.number}_{self.name}.cu"

    def aligned(self, a: Any, b: Any, c: Any) -> bool:
        """Return whether the operands in `vectors` and all their rows start at multiples of 16 bytes."""
        operands = {"a": a, "b": b, "c": c}
        return all(
            x.shape[1] % 4 == 0 and x.__cuda_array_interface__["data"][0] % ALIGNMENT == 0
            for x in (operands[name] for name in self.vectors)
        )

    def function(self, aligned: bool = True) -> Any:
        """Return the compiled kernel, of the active backend."""
        return SOURCES.function(self.file, f"matmul_{self.name}" + f"<{str(aligned).lower()}>" * bool(self.vectors))

    def grid(self, m: int, n: int) -> tuple[int, ...]:
        """Return blocks, as (x, y), for a product of m × n."""
        return math.ceil(n / self.tile[1]), math.ceil(m / self.tile[0])

    def launch(self, a: Any, b: Any, c: Any) -> None:
        """Queue the kernel, without any check."""
        sizes = c.shape[0], c.shape[1], a.shape[1]
        function = self.function(self.aligned(a, b, c))
        launch(function, self.grid(*c.shape), self.block, (a, b, c, *map(np.int32, sizes)))


@dataclass(frozen=True)
class TunedStep(Step):
    """Step 9, whose tile and block depend on the shape; `tile` and `block` are unused."""

    def tiles(self, m: int, n: int, k: int) -> tiles.Tiles:
        """Return the sizes it takes for a shape."""
        return tiles.chosen(m, n, k)

    def launch(self, a: Any, b: Any, c: Any) -> None:
        """Queue the kernel with the sizes for this shape, without any check."""
        launch_tuned(self.tiles(*c.shape, a.shape[1]), self.aligned(a, b, c), a, b, c)


def launch_tuned(sizes: tiles.Tiles, aligned: bool, a: Any, b: Any, c: Any) -> None:
    """Queue step 9 with given sizes, without any check."""
    function = tuned_function(sizes, aligned)
    arguments = a, b, c, *map(np.int32, (*c.shape, a.shape[1]))
    launch(function, tuned_grid(sizes, *c.shape), sizes.threads, arguments, sizes.shared_bytes)


def tuned_grid(sizes: tiles.Tiles, m: int, n: int) -> tuple[int]:
    """Return blocks of step 9 for a product of m × n."""
    return (math.ceil(m / sizes.bm) * math.ceil(n / sizes.bn),)


@functools.cache
def tuned_function(sizes: tiles.Tiles, aligned: bool) -> Any:
    """Return step 9 compiled for given sizes."""
    function = SOURCES.function("9_tuned.cu", sizes.entry(aligned))
    function.max_dynamic_shared_size_bytes = sizes.shared_bytes
    return function


STEPS: dict[str, Step] = by_name(
    Step(1, "naive", (32, 8), (32, 8)),
    Step(2, "coalesced", (8, 32), (32, 8)),
    Step(3, "shared_tile", (32, 32), (32, 32)),
    Step(4, "register_tile_1d", (64, 64), (512,)),
    Step(5, "register_tile_2d", (128, 128), (256,)),
    Step(6, "vectorised", (128, 128), (256,), "abc"),
    Step(7, "warp_tile", (128, 128), (256,), "abc"),
    Step(8, "async_copies", (128, 128), (256,), "bc"),
    TunedStep(9, "tuned", (0, 0), (), "bc"),
)


def step(name: str) -> Step:
    """Return the step of that name; ValueError names the others."""
    return choose(STEPS, name)
