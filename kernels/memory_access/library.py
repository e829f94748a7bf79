"""The libraries that lab 02's kernels are measured against: CuPy's own functions and CUB.

CUB comes through `cuda.compute` of the package cuda-cccl, which compiles it for the GPU at hand. Where that is not
installed, CuPy's functions are the comparison alone; `cupy.sum` is CUB too, compiled when CuPy was.
"""

import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

CUB = "CUB (cuda.compute)"
HINT = "CUB is not compared: `pip install cuda-cccl` (NVIDIA's cuda.compute) brings it"


def cub_version() -> str | None:
    """Return the version of cuda-cccl, None where it is not installed."""
    return None if importlib.util.find_spec("cuda.compute") is None else importlib.metadata.version("cuda-cccl")


def sums(a: Any, out: Any) -> dict[str, Callable[[], Any]]:
    """Return functions that queue the sum of `a`, a CuPy array, into `out`, of shape (1,)."""
    import cupy

    functions = {"cupy.sum": lambda: cupy.sum(a, out=out.reshape(()))}
    if cub_version() is not None:
        from cuda import compute

        functions[CUB] = _cub(compute.make_reduce_into, a, out, {"h_init": np.zeros((), np.float32)})
    return functions


def prefix_sums(a: Any, out: Any) -> dict[str, Callable[[], Any]]:
    """Return functions that queue the inclusive prefix sum of `a` into `out`, CuPy arrays of one shape."""
    import cupy

    functions = {"cupy.cumsum": lambda: cupy.cumsum(a, out=out)}
    if cub_version() is not None:
        from cuda import compute

        functions[CUB] = _cub(compute.make_inclusive_scan, a, out, {"init_value": np.zeros((), np.float32)})
    return functions


def _cub(make: Callable[..., Any], a: Any, out: Any, initial: dict[str, Any]) -> Callable[[], Any]:
    import cupy
    from cuda.compute import OpKind

    run = make(d_in=a, d_out=out, op=OpKind.PLUS, **initial)
    arguments = {"d_in": a, "d_out": out, "num_items": a.size, "op": OpKind.PLUS, **initial}
    temporary = cupy.empty(max(1, run(temp_storage=None, **arguments)), np.uint8)
    return lambda: run(temp_storage=temporary, stream=cupy.cuda.get_current_stream(), **arguments)
