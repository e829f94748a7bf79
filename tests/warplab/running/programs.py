"""Programs of strangers, as the tests of `run` start them: in a Python of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COURSE = Path(__file__).parents[3]
KERNELS = '''
import sys

import cupy as cp
import numpy as np
from numba import cuda


@cuda.jit
def scale(x, out, factor):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * factor


add = cp.RawKernel(r"""
extern "C" __global__ void add(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + 1;
}
""", "add")
x = np.arange(100, dtype=np.float32)
out = np.zeros_like(x)
'''


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    """Run Python in `folder`, with the package on its path but not in the folder."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("WARPLAB", "NUMBA", "PYTEST"))}
    environment = {**known, "PYTHONPATH": str(COURSE), **variables}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def run(folder: Path, text: str, *options: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    """Write a script and run it: `warplab run OPTIONS script.py ARGUMENTS`."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    return python(folder, "-m", "warplab", "run", *options, "script.py", *arguments)
