"""Results that a GPU gave, as `evidence.simulator.record_instructions` and `record_matrix` write them for the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from warpcourse.paths import COURSE

RECORDED = COURSE / "tests" / "warplab" / "simulator" / "run" / "recorded"


def save(path: Path, results: dict[str, np.ndarray]) -> None:
    """Write the arrays of each dtype as one array, with their names and sizes."""
    groups: dict[str, list[str]] = {}
    for name, values in results.items():
        groups.setdefault(values.dtype.str[1:], []).append(name)
    arrays = {}
    for dtype, names in groups.items():
        arrays[dtype] = np.concatenate([results[name] for name in names])
        arrays[f"{dtype}_names"] = np.array("\n".join(names))
        arrays[f"{dtype}_sizes"] = np.array([results[name].size for name in names], np.int32)
    np.savez_compressed(path, **arrays)


def load(path: Path) -> dict[str, np.ndarray]:
    """Read what `save` wrote."""
    results = {}
    with np.load(path) as arrays:
        for dtype in [key for key in arrays.files if "_" not in key]:
            ends = np.cumsum(arrays[f"{dtype}_sizes"])[:-1]
            names = str(arrays[f"{dtype}_names"]).split("\n")
            results.update(zip(names, np.split(arrays[dtype], ends), strict=True))
    return results
