"""Random inputs whose seed a failing test shows; WARPLAB_TEST_SEED=NUMBER draws the same again."""

from __future__ import annotations

import os
import secrets

import numpy as np


def generator() -> np.random.Generator:
    """A generator with a seed of its own, which is printed: pytest shows it where the test fails."""
    seed = int(os.environ.get("WARPLAB_TEST_SEED") or secrets.randbits(32))
    print(f"random inputs of WARPLAB_TEST_SEED={seed}")
    return np.random.default_rng(seed)
