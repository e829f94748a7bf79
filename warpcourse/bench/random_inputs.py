"""Random inputs of measurements, seeded: every measurement begins with the same numbers, whichever ran before it."""

import os

import numpy as np

SEED = int(os.environ.get("WARPLAB_SEED", "2017"))

_state = {"generator": np.random.default_rng(SEED)}


def generator() -> np.random.Generator:
    """Return the generator of the running measurement."""
    return _state["generator"]


def restart() -> None:
    """Begin again with SEED, in NumPy's generator and in CuPy's. Needs a GPU."""
    _state["generator"] = np.random.default_rng(SEED)
    seed_cupy()


def seed_cupy() -> None:
    """Begin again with SEED in `cupy.random`. Needs a GPU."""
    import cupy

    cupy.random.seed(SEED)
