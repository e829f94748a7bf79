"""cuBLASLt, the library to compare with: its algorithms for a product, and the fastest of them, measured.

`cupy.matmul` calls cuBLAS, which takes the first algorithm of its heuristics. cuBLASLt gives the list, with room of
WORKSPACE_BYTES for those that want it. Names and numbers are those of cublasLt.h.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from warplab.bench.timing import Candidate, time_gpu, time_together

WORKSPACE_BYTES = 64 * 2**20
MOST = 32  # algorithms to ask for
FINALISTS = 4
CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F = 68, 0, 2
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
_TYPES = {np.dtype(np.float32): CUDA_R_32F, np.dtype(np.float16): CUDA_R_16F}


class Result(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: an algorithm and what it needs."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class Product:
    """C = A · B by cuBLASLt: A (m × k) and B (k × n) float16, C of `dtype`, all row-major; sums in float32.

    RuntimeError when the library refuses it.
    """

    def __init__(self, m: int, n: int, k: int, dtype: Any = np.float16) -> None:
        self._call, self._handle = _library()
        self._operation = ctypes.c_void_p()
        self._call("MatmulDescCreate", ctypes.byref(self._operation), CUBLAS_COMPUTE_32F, CUDA_R_32F)
        # The library counts by columns: so it multiplies B, turned, by A, turned, which are the same bytes.
        kind = _TYPES[np.dtype(dtype)]
        self._layouts = [
            self._layout(CUDA_R_16F, n, k),
            self._layout(CUDA_R_16F, k, m),
            self._layout(kind, n, m),
        ]
        self.results = self._ask()

    def _layout(self, kind: int, rows: int, columns: int) -> ctypes.c_void_p:
        layout = ctypes.c_void_p()
        sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
        self._call("MatrixLayoutCreate", ctypes.byref(layout), kind, *sizes)
        return layout

    def _ask(self) -> list[Result]:
        """The library's algorithms, in its order, those first that it takes for the fastest."""
        preference, limit = ctypes.c_void_p(), ctypes.c_uint64(WORKSPACE_BYTES)
        self._call("MatmulPreferenceCreate", ctypes.byref(preference))
        attribute = preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, ctypes.byref(limit), ctypes.c_size_t(8)
        self._call("MatmulPreferenceSetAttribute", *attribute)
        results, found = (Result * MOST)(), ctypes.c_int()
        a, b, c = self._layouts
        given = self._operation, a, b, c, c, preference
        self._call("MatmulAlgoGetHeuristic", self._handle, *given, MOST, results, ctypes.byref(found))
        self._call("MatmulPreferenceDestroy", preference)
        return [result for result in results[: found.value] if result.state == 0]

    def launch(self, a: Any, b: Any, c: Any, result: Result | None = None) -> None:
        """Queues the product on CuPy's current stream, by default with the library's first algorithm."""
        import cupy

        result = result or self.results[0]
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        of_b, of_a, of_c = self._layouts
        room = _workspace()
        pointers = [ctypes.c_void_p(x.data.ptr) for x in (a, b, c, room)]
        self._call(
            "Matmul",
            self._handle,
            self._operation,
            ctypes.byref(one),
            pointers[1],
            of_b,
            pointers[0],
            of_a,
            ctypes.byref(zero),
            pointers[2],
            of_c,
            pointers[2],
            of_c,
            ctypes.byref(result.algorithm),
            pointers[3],
            ctypes.c_size_t(WORKSPACE_BYTES),
            ctypes.c_void_p(cupy.cuda.get_current_stream().ptr),
        )

    def fastest(self, a: Any, b: Any, c: Any) -> Result:
        """The algorithm that takes least time on these matrices: all run a few times, the best then take turns."""
        seconds = [time_gpu(self.launch, [(a, b, c, result)], runs=3).seconds for result in self.results]
        finalists = sorted(range(len(seconds)), key=seconds.__getitem__)[:FINALISTS]
        candidates = {str(i): Candidate(self.launch, [(a, b, c, self.results[i])]) for i in finalists}
        timings = time_together(candidates, rounds=4, runs=3, warmup=1)
        return self.results[int(min(timings, key=lambda i: timings[i].seconds))]


@functools.cache
def _library() -> tuple[Any, ctypes.c_void_p]:
    """A function that calls cuBLASLt and checks the answer, and a handle."""
    from cuda import pathfinder

    library = ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path)

    def call(name: str, *arguments: Any) -> None:
        status = getattr(library, f"cublasLt{name}")(*arguments)
        if status:
            raise RuntimeError(f"cublasLt{name} answers with status {status}")

    handle = ctypes.c_void_p()
    call("Create", ctypes.byref(handle))
    return call, handle


@functools.cache
def _workspace() -> Any:
    import cupy

    return cupy.empty(WORKSPACE_BYTES, cupy.uint8)
