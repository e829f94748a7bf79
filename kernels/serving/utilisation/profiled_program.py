"""A small program to look at with profilers: requests that are served one after the other, as a beginner writes it.

For each request the host makes an input, copies it up, launches two kernels, copies the result down, which waits, and
adds it up. Run it under Nsight Systems or Nsight Compute:

    nsys profile --trace=cuda --stats=true python -m kernels.serving.utilisation.profiled_program
    ncu --clock-control none --kernel-name spin --launch-count 1 python -m kernels.serving.utilisation.profiled_program
"""

import sys
from typing import Any

import numpy as np

from kernels.serving.utilisation import busy_kernels
from warplab import cp

N = 2**20  # elements of a request
ROUNDS = 2000


def serve(requests: int, n: int = N, rounds: int = ROUNDS) -> list[float]:
    """Return the sum of each request's result. `n`: elements of a request, a multiple of 4."""
    sums = []
    rng = np.random.default_rng(11)
    for _ in range(requests):
        x = rng.uniform(-2, -1.5, n).astype(np.float32)  # the host prepares
        given = cp.asarray(x)
        spun: Any = cp.empty(n, np.float32)
        copied: Any = cp.empty(n, np.float32)
        busy_kernels.spin(given, rounds, spun)
        busy_kernels.copy(spun, copied)
        result = cp.asnumpy(copied)  # waits for both kernels
        sums.append(float(result.sum()))  # the host evaluates
    return sums


def trace(path: str, requests: int = 8) -> None:
    """Write a timeline of `serve` as a Chrome trace, by CUPTI through torch.profiler. Needs a GPU and torch."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.zeros(1, device="cuda")
    serve(2)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        serve(requests)
        torch.cuda.synchronize()
    p.export_chrome_trace(path)


if __name__ == "__main__":
    print(sum(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8)))
