"""Steps 5 and 6 with a piece of their source changed, in the simulator: what a mistake in them does."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from kernels.tensor_core.ladder import STEPS
from kernels.tensor_core.tiles import Persistent
from warpcourse.bench import hopper
from warplab import cp
from warplab.hardware import backend

STAGES = 2  # so few that they come round in small products, too
SIZES = Persistent(STAGES, cluster=2, group=2)


def simulate_changed(name: str, old: str, new: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a · b by step "wgmma_tma" or "wgmma_persistent" with `new` in place of `old`, which its source has once.

    `a`, `b`: float16, of shapes (m, k) and (k, n); n and k are multiples of 8. Return float32, of shape (m, n).
    Raise SimulatorError for what the changed kernel does wrong, ValueError where `old` is not found once, and
    RuntimeError on a GPU, which a wrong kernel may keep busy for ever.
    """
    if backend.name() == "gpu":
        raise RuntimeError("a wrong kernel may hang a GPU: start Python with WARPLAB_BACKEND=simulator for this")
    step = STEPS[name]
    if step.source.count(old) != 1:
        raise ValueError(f"{step.file} has {step.source.count(old)} times {old!r}; name a piece that it has once")
    persistent = name == "wgmma_persistent"
    options = "-DRESULT=float", *(SIZES.options if persistent else (f"-DSTAGES={STAGES}",))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / step.file
        file.write_text(step.source.replace(old, new), encoding="utf-8")
        function = hopper.kernel(file, f"tensor_core_{name}", options)
    c = cp.asarray(np.full((a.shape[0], b.shape[1]), np.nan, np.float32))
    sizes: tuple[Any, ...] = (SIZES,) if persistent else ()
    step.launch(cp.asarray(a), cp.asarray(b), c, *sizes, function=function)
    return cp.asnumpy(c)
