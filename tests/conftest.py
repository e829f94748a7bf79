"""What all tests share: figures without a screen, hypothesis without time limits, the `gpu` mark."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
from hypothesis import settings

from warplab.hardware import backend

# The first example of a test may compile a kernel, which takes longer than hypothesis' limit of 200 ms.
settings.register_profile("warplab", deadline=None, print_blob=True)
settings.load_profile("warplab")

MAIN = sys.modules["__main__"]


@pytest.fixture(autouse=True)
def _pytest_stays_the_main_module():
    """An IPython shell puts its own there; a shell that was reset leaves it empty, and `spawn` cannot start from it."""
    sys.modules["__main__"] = MAIN


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a GPU a test marked gpu is skipped, but fails where `-m gpu` asked for it: nothing passes unrun."""
    if item.get_closest_marker("gpu") is None:
        return
    problem, _ = backend.gpu_problem()
    if problem is None:
        return
    if item.config.option.markexpr == "gpu":
        pytest.fail(f"needs an NVIDIA GPU: {problem}", pytrace=False)
    pytest.skip(f"needs an NVIDIA GPU: {problem}")
