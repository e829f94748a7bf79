"""The autotuner of step 5: `python -m kernels.convolution.hopper.autotune [pass ...]` measures every candidate on
ResNet-50's layers, forward and for the gradient of x, and writes the fastest into tiles.json. Without a Hopper GPU:
exit code 2.
"""

import functools
import sys
from dataclasses import astuple
from typing import Any

import numpy as np

from kernels.convolution.definition import networks, operands
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import tile_sizes
from kernels.convolution.hopper.backward_data import BACKWARD_DATA
from kernels.convolution.hopper.forward import FORWARD
from kernels.convolution.hopper.tile_sizes import CANDIDATES, Im2colTiles
from warpcourse.bench.autotune import Autotuner, rank
from warpcourse.bench.timing import Candidate, rounded

STEPS = {"forward": FORWARD[0], "backward_data": BACKWARD_DATA[0]}
MOST_ERROR = 5e-4  # relative; rounding to float16 alone makes 2e-4
MOST_TURNS = 4  # of clusters, which do not stay on their multiprocessors


def candidates(conv: Convolution, of: str) -> list[Im2colTiles]:
    """Return the candidates that are worth a try for a pass of a convolution."""
    pixels, channels, _ = tile_sizes.gemm(conv, of)
    return [tiles for tiles in CANDIDATES if _sensible(tiles, pixels, channels)]


def _sensible(tiles: Im2colTiles, pixels: int, channels: int) -> bool:
    narrow = tiles.bn <= max(64, channels)
    return narrow and (tiles.split == 1 or tiles.tiles(pixels, channels) * tiles.cluster <= MOST_TURNS * 132)


def best(conv: Convolution, of: str) -> dict[str, Any]:
    """Return the fastest sizes for a pass of a convolution, and the finalists in µs, from the fastest on."""
    sets = operands.random_sets(conv, of, "NHWC", "float16")
    arguments = [(*arrays, conv) for arrays in sets]
    error_of = operands.error_of(conv, of, "NHWC", sets[0])

    def launch(tiles: Im2colTiles) -> Candidate:
        return Candidate(functools.partial(STEPS[of].launch, tiles=tiles), arguments)

    def wrong(tiles: Im2colTiles) -> str:
        result = sets[0][2]
        result.fill(np.nan)
        launch(tiles).function(*arguments[0])
        error = error_of(result)
        return "" if error < MOST_ERROR else f"relative error {error:.3g} in {of} of {conv}"

    _, finalists = rank(candidates(conv, of), launch, wrong, alone=8, rounds=4, runs=8)
    timed = [[list(astuple(tiles)), seconds * 1e6] for tiles, seconds in finalists.items()]
    return {"sizes": timed[0][0], "finalists": timed}


def best_of_layers(of: str) -> dict[str, Any] | None:
    """Return a row for a pass of each of ResNet-50's convolutions; None where the GPU cannot run the step."""
    if lack := STEPS[of].missing():
        print(lack, file=sys.stderr)
        return None
    rows = {}
    for layer in networks.compared():
        row = rows[str(layer.convolution)] = rounded(best(layer.convolution, of))
        print(f"{of} {layer.name}", *row["finalists"], sep="\n  ", flush=True)
    return rows


TUNE = {of: functools.partial(best_of_layers, of) for of in STEPS}
AUTOTUNER = Autotuner("convolution.hopper", tile_sizes.PATH, TUNE, __doc__)

if __name__ == "__main__":
    AUTOTUNER.main()
