"""Sizes that step 9 is compiled for, and the table that says which to take for which shape.

`autotune` measures candidates on a GPU and writes tiles.json; `chosen` looks a shape up in it.
"""

import functools
import json
import math
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "tiles.json"
MAX_SHARED_BYTES = 227 * 1024  # of a block on compute capability 9.0


@dataclass(frozen=True)
class Tiles:
    """Parameters of the template in 9_tuned.cu, in its order.

    `bm`, `bn`: rows and columns of C that a block computes; `bk`: depth of its tiles; `wm`, `wn`: rows and columns of a
    warp; `tm`, `tn`: of a thread; `stages`: pairs of tiles in shared memory; `blocks`: on a multiprocessor at a time,
    at least; `group`: tiles of C that blocks run down before the next column of tiles. With one stage they are those of
    `few_rows`.
    """

    bm: int
    bn: int
    bk: int
    wm: int
    wn: int
    tm: int
    tn: int
    stages: int
    blocks: int
    group: int

    def __post_init__(self) -> None:
        """Raise ValueError, naming the rule that the sizes break."""
        for right, rule in self._rules():
            if not right:
                raise ValueError(f"{self}: {rule}")

    def _rules(self) -> list[tuple[bool, str]]:
        if min(astuple(self)) < 1:
            return [(False, "all sizes must be at least 1")]
        if self.few_rows:
            sizes = (self.bm, 128, 64, self.bm, 128, self.bm, 4, 1, self.blocks, 8)
            return [(self.bm <= 8 and astuple(self) == sizes, "one stage is for 8 rows at most, of 128 columns")]
        rules = [
            (self.bm % self.wm == 0 and self.bn % self.wn == 0, "wm must divide bm, and wn bn"),
            (self.wm % self.tm == 0 and self.wn % self.tn == 0, "tm must divide wm, and tn wn"),
            (self.tm % 4 == 0 and self.tn % 4 == 0, "tm and tn must be multiples of 4"),
            ((self.wm // self.tm, self.wn // self.tn) in ((4, 8), (8, 4), (1, 32)), "a warp is 4 × 8, 8 × 4 or 1 × 32"),
            (self.bk % 8 == 0, "bk must be a multiple of 8"),
            (self.threads <= 1024, "a block must have at most 1024 threads"),
            (self.bm % (self.threads // 8) == 0, "bm must be a multiple of an eighth of the threads"),
            (self.shared_bytes <= MAX_SHARED_BYTES, f"the tiles need {self.shared_bytes} bytes of shared memory"),
        ]
        for line in (self.bn, self.bn // 2, self.bn // 4):  # copies for a row of the tile of B
            rows = max(1, self.threads // line)
            whole = rows * line == self.threads * max(1, line // self.threads) and self.bk % rows == 0
            rules.append((whole, "each thread must copy equally many words of B"))
        return rules

    @property
    def few_rows(self) -> bool:
        """Return whether step 10 computes them by `matmul_few_rows`, in whose block eight warps share the depth."""
        return self.stages == 1

    @property
    def threads(self) -> int:
        """Return threads of a block."""
        return 256 if self.few_rows else self.bm // self.wm * (self.bn // self.wn) * 32

    @property
    def shared_bytes(self) -> int:
        """Return dynamic shared memory of a block; the rows of the tile of A are padded by four words."""
        return 0 if self.few_rows else 4 * self.stages * self.bk * (self.bm + 4 + self.bn)

    def entry(self, aligned: bool) -> str:
        """Return the instance's name for the compiler. `aligned`: b and c are read and written 16 bytes at a time."""
        return f"matmul_tuned<{', '.join(map(str, astuple(self)))}, {str(aligned).lower()}>"


@functools.cache
def table() -> dict[str, Any]:
    """Return tiles.json: `device`, `date`, and under `shapes` a row for each shape with the sizes that were fastest
    there."""
    return json.loads(PATH.read_text())


def chosen(m: int, n: int, k: int) -> Tiles:
    """Return the sizes for a product of m × k and k × n: those of the nearest shape in the table.

    Distance: how often, in sum, m, n and k must be doubled or halved; of equals the first.
    """

    def distance(row: dict[str, Any]) -> float:
        return sum(abs(math.log2(mine / its)) for mine, its in zip((m, n, k), row["shape"], strict=True))

    return Tiles(*min(table()["shapes"], key=distance)["tiles"])
