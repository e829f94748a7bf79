"""Machines with and without GPUs, for tests that pretend to run there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from warplab.hardware import backend, driver

H100 = driver.Gpu("NVIDIA H100 80GB HBM3", 80 * 2**30, (9, 0))
V100 = driver.Gpu("Tesla V100-SXM2-16GB", 16 * 2**30, (7, 0))
GOOD = driver.Driver("580.95.05", (13, 0), (H100,))
OLD = driver.Driver("550.54.15", (12, 4), (H100,))
VOLTA = driver.Driver("580.95.05", (13, 0), (V100,))
NOTHING = driver.Driver(problem="no NVIDIA driver (libcuda.so.1 not found)")
needs_idle_gpu = pytest.mark.skipif(
    int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1,
    reason="sets rates against each other that are measured one after another; other workers' launches change them: "
    "run without -n",
)


def pretending(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Yield `machine(driver, libraries=(None, ""))`, which pretends that the process runs there; for a fixture."""

    def pretend(found: driver.Driver, libraries: tuple[str | None, str] = (None, "")) -> None:
        monkeypatch.setattr(driver, "query", lambda: found)
        monkeypatch.setattr(backend, "library_problem", lambda: libraries)

    monkeypatch.delenv("WARPLAB_BACKEND", raising=False)
    backend._choose.cache_clear()
    backend.announce.cache_clear()
    yield pretend
    backend._choose.cache_clear()
    backend.announce.cache_clear()
