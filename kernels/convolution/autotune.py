"""The autotuner of step 5: `python -m kernels.convolution.autotune [pass ...]` measures every candidate on ResNet-50's
layers, forward and for the gradient of x, and writes the fastest into tiles.json. Without a Hopper GPU: exit code 2.

Each candidate's result is checked. All run a few times; the best FINALISTS then take turns. What the file says of a
pass that is not named stays, if it is from the same GPU.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from kernels.convolution import hopper_tiles, operands, resnet50
from kernels.convolution.geometry import Convolution
from kernels.convolution.hopper_backward_data import BACKWARD_DATA
from kernels.convolution.hopper_forward import FORWARD
from kernels.convolution.hopper_tiles import CANDIDATES, Tiles
from warplab.bench import timing
from warplab.bench.timing import Candidate, time_gpu, time_together

FINALISTS = 5
STEPS = {"forward": FORWARD[0], "backward_data": BACKWARD_DATA[0]}
MOST_ERROR = 5e-4  # relative; rounding to float16 alone makes 2e-4
MOST_TURNS = 4  # of clusters, which do not stay on their multiprocessors


def candidates(conv: Convolution, of: str) -> list[Tiles]:
    """The candidates that are worth a try for a pass of a convolution."""
    pixels, channels, _ = hopper_tiles.gemm(conv, of)
    return [tiles for tiles in CANDIDATES if _sensible(tiles, pixels, channels)]


def _sensible(tiles: Tiles, pixels: int, channels: int) -> bool:
    narrow = tiles.bn <= max(64, channels)
    return narrow and (tiles.split == 1 or tiles.tiles(pixels, channels) * tiles.cluster <= MOST_TURNS * 132)


def best(conv: Convolution, of: str) -> dict[str, Any]:
    """The fastest candidate for a pass of a convolution. RuntimeError for a wrong result."""
    sets = operands.random_sets(conv, of, "NHWC", "float16")
    arguments = [(*arrays, conv) for arrays in sets]
    result = sets[0][2]
    error_of = operands.error_of(conv, of, "NHWC", sets[0])
    found = {}
    for tiles in candidates(conv, of):
        function = functools.partial(STEPS[of].launch, tiles=tiles)
        result.fill(np.nan)
        function(*arguments[0])
        error = error_of(result)
        if not error < MOST_ERROR:
            raise RuntimeError(f"{tiles} computes {of} of {conv} wrong: relative error {error:.3g}")
        found[tiles] = time_gpu(function, arguments, runs=8).seconds
    finalists = sorted(found, key=found.get)[:FINALISTS]
    timings = time_together(
        {
            str(i): Candidate(functools.partial(STEPS[of].launch, tiles=tiles), arguments)
            for i, tiles in enumerate(finalists)
        },
        rounds=4,
        runs=8,
        warmup=1,
    )
    order = sorted(timings, key=lambda i: timings[i].seconds)
    return {
        "sizes": list(astuple(finalists[int(order[0])])),
        "finalists": [[list(astuple(finalists[int(i)])), timings[i].seconds * 1e6] for i in order],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """End with a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m kernels.convolution.autotune", description=__doc__)
    parser.add_argument("passes", nargs="*", help=f"of {', '.join(STEPS)} (default: both)")
    chosen = parser.parse_args(arguments).passes or list(STEPS)
    if unknown := set(chosen) - set(STEPS):
        parser.error(f"there is nothing to tune in {', '.join(unknown)}; choose of {', '.join(STEPS)}")
    timing.require_gpu("The autotuner")
    if lack := STEPS["forward"].missing():
        print(lack, file=sys.stderr)
        raise SystemExit(timing.NO_GPU)
    about = timing.machine()
    before = hopper_tiles.table()
    same = before.get("device") == about["device"]
    rows: dict[str, Any] = {of: before[of] for of in STEPS if same and of in before}
    for of in chosen:
        rows[of] = {}
        for layer in resnet50.compared():
            row = rows[of][str(layer.convolution)] = timing.rounded(best(layer.convolution, of))
            print(f"{of} {layer.name}", *row["finalists"], sep="\n  ", flush=True)
    _write({"device": about["device"], "date": about["date"]}, rows)
    print(timing.last_line("convolution-autotune", {of: len(rows[of]) for of in rows}, about))


def _write(head: dict[str, str], rows: dict[str, Any]) -> None:
    """tiles.json, a line for each layer."""
    parts = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for of, layers in rows.items():
        lines = ",\n  ".join(f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(row)}" for key, row in layers.items())
        parts.append(f"{json.dumps(of)}: {{\n  {lines}\n }}")
    hopper_tiles.PATH.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
