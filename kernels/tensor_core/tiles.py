"""Sizes that steps 4 and 6 are compiled for. `autotune` measures candidates on a GPU and writes the fastest into
tiles.json; without that file the sizes are those below, chosen by arithmetic.
"""

import functools
import json
import math
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from warpcourse.bench.hopper import demand
from warpcourse.bench.lab_kernels import card

PATH = Path(__file__).parent / "tiles.json"
MAX_SHARED_BYTES = 227 * 1024  # of a block on compute capability 9.0
DEPTH = 64  # of the tiles that a block loads, in steps 4 to 6
TMA_STAGES = 4  # of step 5
SWIZZLE_BYTES = 1024  # after which the swizzle of 128 bytes repeats: tiles that TMA writes start at multiples
TMA_SHARED_BYTES = TMA_STAGES * 2 * DEPTH * (128 + 256) + SWIZZLE_BYTES


@dataclass(frozen=True)
class Stages:
    """Parameters of the template in 4_mma_stages.cu, in its order.

    `bm`, `bn`: rows and columns of C that a block computes; `wm`, `wn`: of a warp; `stages`: pairs of tiles in shared
    memory; `blocks`: on a multiprocessor at a time, at least; `group`: tiles of C that blocks run down before the next
    column of tiles.
    """

    bm: int
    bn: int
    wm: int
    wn: int
    stages: int
    blocks: int
    group: int

    def __post_init__(self) -> None:
        """Raise ValueError, naming the rule that the sizes break."""
        if min(astuple(self)) < 1:
            raise ValueError(f"{self}: all sizes must be at least 1")
        rules = (
            (self.wm % 16 == 0 and self.wn % 32 == 0, "wm must be a multiple of 16, and wn of 32"),
            (self.bm % self.wm == 0 and self.bn % self.wn == 0, "wm must divide bm, and wn bn"),
            (self.bn % 64 == 0, "bn must be a multiple of 64"),
            (self.threads <= 1024, "a block must have at most 1024 threads"),
            (self.bm % (self.threads // 8) == 0, "bm must be a multiple of an eighth of the threads"),
            (self.threads % self.bn == 0 and self.threads // (self.bn // 8) <= DEPTH, "bn must divide the threads"),
            (self.stages >= 2, "stages must be at least 2"),
            (
                self.shared_bytes * self.blocks <= MAX_SHARED_BYTES,
                f"{self.blocks} blocks need {self.shared_bytes * self.blocks} bytes of shared memory",
            ),
        )
        demand(self, *rules)

    @property
    def threads(self) -> int:
        """Return threads of a block."""
        return self.bm // self.wm * (self.bn // self.wn) * 32

    @property
    def shared_bytes(self) -> int:
        """Return shared memory of a block."""
        return self.stages * 2 * DEPTH * (self.bm + self.bn)

    def entry(self, result: str) -> str:
        """Return the instance's name for the compiler, for results of type `result` ("half" or "float")."""
        return f"tensor_core_mma_stages<{result}, {', '.join(map(str, astuple(self)))}>"


@dataclass(frozen=True)
class Persistent:
    """Parameters of 6_wgmma_persistent.cu, whose blocks compute 128 × 256 elements of C at a time.

    `stages`: pairs of tiles in shared memory; `cluster`: blocks, one below the other, that share tiles of B; `group`:
    clusters' tiles that clusters run down before the next column; `most`: blocks in all at most, 0 for as many as the
    GPU can hold at a time.
    """

    stages: int
    cluster: int
    group: int
    most: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError, naming the rule that the sizes break."""
        rules = (
            (self.stages >= 2, "stages must be at least 2"),
            (self.cluster in (1, 2, 4), "cluster must be 1, 2 or 4, to divide four boxes of B"),
            (self.group >= 1, "group must be at least 1"),
            (self.most == 0 or self.most >= self.cluster, "most must be 0 or at least a cluster"),
            (self.shared_bytes <= MAX_SHARED_BYTES, f"a block needs {self.shared_bytes} bytes of shared memory"),
        )
        demand(self, *rules)

    @property
    def shared_bytes(self) -> int:
        """Return shared memory of a block: stages, four result buffers of 8 KiB, and room to start at a multiple of
        1024."""
        return self.stages * 2 * DEPTH * (128 + 256) + 4 * 8192 + SWIZZLE_BYTES

    @property
    def options(self) -> tuple[str, ...]:
        """Return options for the compiler."""
        return f"-DSTAGES={self.stages}", f"-DCLUSTER={self.cluster}", f"-DGROUP={self.group}"

    def blocks(self, m: int, n: int, resident: int) -> int:
        """Return blocks of a launch: whole clusters, no more than there are tiles or than can run at a time,
        `resident`."""
        clusters = math.ceil(m / (128 * self.cluster)) * math.ceil(n / 256)
        most = min(self.most or resident, resident)
        return self.cluster * min(clusters, most // self.cluster)


DEFAULT_STAGES = Stages(128, 256, 64, 64, 3, 1, 8)
SMALL_STAGES = Stages(128, 128, 64, 64, 3, 1, 8)  # for GPUs that allow a block 99 KiB, most that are no data-centre's
BY_SHAPE = (Stages(64, 64, 32, 32, 3, 3, 8), Stages(64, 128, 32, 64, 3, 2, 8), SMALL_STAGES)  # beside `stages()`
DEFAULT_PERSISTENT = Persistent(4, 2, 8)
# What `for_shape` reckons with: products and bytes of shared memory of a multiprocessor in a clock, bytes from L2 of
# all, and clocks of a stage's way, of a tile's start, and of a result.
PRODUCTS, SHARED_BANDWIDTH, L2_BANDWIDTH = 1024, 128, 5000
LATENCY, START, RESULT = 1000, 1500, 1 / 16


@functools.cache
def table() -> dict[str, Any] | None:
    """Return tiles.json: `device`, `date`, and the fastest sizes of the steps that were tuned, by name; None without
    it."""
    return json.loads(PATH.read_text()) if PATH.exists() else None


def stages() -> Stages:
    """Return the sizes of step 4, for the shared memory of the GPU."""
    found = table() or {}
    tuned = Stages(*found["mma_stages"]["sizes"]) if "mma_stages" in found else DEFAULT_STAGES
    return tuned if tuned.shared_bytes <= card()[1] else SMALL_STAGES


def for_shape(m: int, n: int, k: int, multiprocessors: int) -> Stages:
    """Return the sizes with which step 4 should take a product the fewest clocks, as step 7's rule says it: waves ×
    (start + steps × max(products, bytes from shared memory and L2, latency) + results)."""
    most = card()[1]

    def clocks(sizes: Stages) -> float:
        blocks, resident = (
            math.ceil(m / sizes.bm) * math.ceil(n / sizes.bn),
            min(sizes.blocks, most // sizes.shared_bytes),
        )
        together = min(resident, math.ceil(blocks / multiprocessors))
        loaded = 2 * DEPTH * (sizes.bm + sizes.bn)
        read = 2 * DEPTH * sizes.threads // 32 * (sizes.wm + sizes.wn)
        step = max(
            together * sizes.bm * sizes.bn * DEPTH / PRODUCTS,
            together * (read + loaded) / SHARED_BANDWIDTH,
            loaded * min(blocks, together * multiprocessors) / L2_BANDWIDTH,
            LATENCY / (sizes.stages - 1),
        )
        results = together * sizes.bm * sizes.bn * RESULT
        return math.ceil(blocks / (multiprocessors * resident)) * (START + math.ceil(k / DEPTH) * step + results)

    return min((sizes for sizes in (stages(), *BY_SHAPE) if sizes.shared_bytes <= most), key=clocks)


def persistent() -> Persistent:
    """Return the sizes of step 6."""
    found = table() or {}
    return Persistent(*found["wgmma_persistent"]["sizes"]) if "wgmma_persistent" in found else DEFAULT_PERSISTENT
