"""What the names of cuBLAS's kernels say: the tile it takes for a shape, and how many parts it divides k into."""

import re
from typing import Any

# Such as ..._tilesize256x128x8_... and cutlass_80_simt_sgemm_256x128_8x4_...
_TILE = re.compile(r"tilesize(\d+)x(\d+)x\d+|gemm_(\d+)x(\d+)_")


def choices(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each shape of `measurements.library_kernels`: `shape`, `tile`, `tiles` and `parts`.

    `tile`: both sides of the tile that a block computes, as the name gives them; None where it does not. `tiles`: of C,
    the blocks in x and y of the kernel that multiplies. `parts`: of k, its blocks in z.
    """
    result = []
    for row in rows:
        product = row["kernels"][0]
        found = _TILE.search(product["kernel"])
        sides = [int(side) for side in found.groups() if side] if found else None
        x, y, z = (int(number) for number in re.findall(r"\d+", product["grid"]))
        result.append({"shape": row["shape"], "tile": sides, "tiles": x * y, "parts": z})
    return result
