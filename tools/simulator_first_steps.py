"""The beginning of docs/simulator.md: what the simulator is, with examples that run when the page is written."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

INTRODUCTION = """\
The simulator runs CUDA kernels on a machine without a GPU. NVIDIA's own compilers turn a kernel in CUDA C++ or Numba
into instructions called PTX. The simulator executes these for every thread of the launch, as operations on NumPy
arrays with one entry per thread; loops of few threads it compiles (with LLVM). How many forms of each instruction were
compared with an H100 is in the tables below. While a kernel runs, the simulator

- **counts** what Nsight Compute (`ncu`) counts on a GPU, in total and by source line: memory requests, sectors, bank
  conflicts, branches, active lanes;
- **catches mistakes** as compute-sanitizer does: accesses out of bounds, reads of uninitialised memory, races,
  divergent barriers, endless loops. The message names the thread, the line, the array and the likely cause.

Its own time is no measure of a GPU's. What a launch would take on one can be estimated from its counters and machine
code: see [estimate.md](estimate.md)."""
COUNT = '''\
import numpy as np
from warplab import CudaSource, simulate

code = """
__global__ void copy(const float* x, float* y, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i * stride];
}
"""
x, y = np.arange(8192, dtype=np.float32), np.zeros(1024, np.float32)
for stride in (1, 8):
    profile = simulate(CudaSource(code, "copy"), 4, 256, (x, y, np.int32(stride)))  # 4 blocks of 256 threads
    print(y[:4], profile.counts.sectors_per_load_request)'''
MISTAKE = '''\
wrong = """
__global__ void reverse(float* x) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    x[t] = s[63 - t];
}
"""
try:
    simulate(CudaSource(wrong, "reverse"), 1, 64, (x,))
except Exception as error:
    print(error)'''
AFTER_COUNT = """\
A load of 32 neighbouring values of 4 bytes touches 4 sectors of 32 bytes; with a stride of 8, each lane touches its
own. All counters are fields of `profile.counts`; `profile.lines` has them by source line, and in a notebook
`with warplab.profile() as p: ...` shows them in tables. `simulate` also takes kernels of Numba (`@cuda.jit`) and CuPy.
Without a GPU, the notebooks' ordinary launches, `kernel[grid, block](...)`, run on the simulator, too."""
OFF = """\
Checks and counters take time: without them a launch is up to three times as fast (see Speed).

| option of `simulate` | what it does |
| --- | --- |
| `checks=False` | no access is tested, no race detected: a wrong kernel gives wrong results, as on a GPU |
| `races=False` | accesses are tested, but races are not detected |
| `counters=False` | nothing is counted |
| `sample_blocks=64` | only about 64 blocks run, and the counters are scaled to the whole grid |
| `scheduling="pascal"` | one program counter per warp, as before 2017 |
| `path_limit=...` | how long a loop may run before it counts as endless |
| `volatile_orders=False` | `volatile` in shared memory is no excuse for a race, not even within a warp |
| `used_reads_only=True` | shared memory that nobody wrote may be read where the result does not depend on it |
| `lanes_apart=True` | `__activemask()` names the calling lane alone, and no mask may name lanes that have ended |
| `observers=(...,)` | your own observers of the launch: classes derived from `simulator.Observer` |

A large grid does not run all at once, but in *chunks* of blocks with about `chunk_lanes` threads, so that their data
fit the processor's cache. A launch counts as endless when a chunk takes more than `path_limit` instructions, where
threads at the same instruction take it together; messages call that *one path*."""


def first_steps() -> Iterator[str]:
    """Yield the parts of the page, Markdown."""
    scope: dict = {}
    yield INTRODUCTION
    yield "## First steps"
    yield _example(COUNT, scope)
    yield AFTER_COUNT
    yield "### A mistake"
    yield _example(MISTAKE, scope)
    yield "### With fewer checks"
    yield OFF


def _example(code: str, scope: dict) -> str:
    """Show code and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, scope)
    return f"```python\n{code}\n```\n\nprints\n\n```text\n{printed.getvalue().rstrip()}\n```"
