"""Five kernels of the course, found by name where their labs are there, to decide on which road each is.

Labs do not import each other: a case names the module that it takes its kernel from, as a server names its engine.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from kernels.serving.utilisation.three_roads import Decision, decide
from warpcourse.bench.compared_launches import Launch
from warplab.launch import simulate
from warplab.launch.launch_record import LaunchRecord


@dataclass(frozen=True)
class Case:
    """One kernel. `module`: where its lab keeps it; `make`: gives the launch from that module.

    `independent`: instructions of one thread that need not wait for each other, as its source shows. `sample`: blocks
    that the simulator runs of a larger grid.
    """

    name: str
    module: str
    make: Callable[[ModuleType, np.random.Generator], Launch]
    independent: int = 1
    sample: int = 64

    def launch(self, seed: int = 11) -> Launch | None:
        """Return the launch, its arrays in host memory; None where the lab is not there."""
        try:
            module = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name == ".".join(self.module.split(".")[:2]):
                return None
            raise
        return self.make(module, np.random.default_rng(seed))

    def counted(self, launch: Launch) -> LaunchRecord:
        """Return what the simulator counts of the launch, from a sample of its blocks where the grid is larger."""
        arguments = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in launch.arguments)
        size: Any = launch.grid, launch.block
        return simulate.simulate(
            launch.kernel(), *size, arguments, shared_bytes=launch.shared_bytes, sample_blocks=self.sample
        )

    def decide(self, card: str = "H100", seconds: float | None = None) -> Decision | None:
        """Return the road of this kernel, from the simulator's counters; None where the lab is not there."""
        launch = self.launch()
        if launch is None:
            return None
        return decide(self.counted(launch), card, seconds, independent=self.independent, name=self.name)


def _vector_multiply(module: Any, rng: np.random.Generator, n: int = 2**24) -> Launch:
    kernel = module.KERNELS["cuda_float4"]
    a, b = (rng.random(n, dtype=np.float32) for _ in range(2))
    arguments = kernel.arguments(a, b, np.zeros(n, np.float32))
    return Launch("vector multiply", kernel.function, kernel.blocks(n, module.BLOCK), module.BLOCK, arguments)


def _transpose(module: Any, rng: np.random.Generator, side: int = 4096) -> Launch:
    kernel = module.TRANSPOSES["cuda_naive"]
    a = rng.random((side, side), dtype=np.float32)
    return Launch(
        "naive transpose", kernel.function, kernel.grid(side, side), kernel.block, kernel.arguments(a, np.zeros_like(a))
    )


def _branches(module: Any, rng: np.random.Generator, n: int = 2**20) -> Launch:
    x = rng.random(n, dtype=np.float32)
    arguments = module.paths_arguments(x, np.zeros_like(x), "lane", 256)
    kernel = module.kernel("cuda_paths<8>")
    return Launch("branches, 8 ways in a warp", kernel.function, module.blocks(n), module.BLOCK, arguments)


def _matmul(module: Any, rng: np.random.Generator, side: int = 4096, depth: int = 512) -> Launch:
    step = module.STEPS["async_copies"]
    a, b = (rng.random(shape, dtype=np.float32) for shape in ((side, depth), (depth, side)))
    arguments = (a, b, np.zeros((side, side), np.float32), *map(np.int32, (side, side, depth)))
    return Launch("matrix multiply", step.function, step.grid(side, side), step.block, arguments)


def _small_layer(module: Any, rng: np.random.Generator) -> Launch:
    return next(launch for launch in module.LAUNCHES if launch.name.startswith("cbr float32 NCHW"))


CASES = (
    Case("vector multiply", "kernels.vector_multiply.product", _vector_multiply, independent=2),
    Case("naive transpose", "kernels.memory_access.transposing", _transpose),
    Case("branches, 8 ways in a warp", "kernels.warp_divergence.divergence", _branches),
    Case("matrix multiply", "kernels.matmul.ladder", _matmul, independent=16, sample=2),
    Case("a layer at batch 2", "kernels.fusion.launches", _small_layer),
)
