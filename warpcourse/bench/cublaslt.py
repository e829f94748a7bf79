"""cuBLASLt, the library to compare with: its algorithms for a product, and the fastest one, as measured.

`cupy.matmul` calls cuBLAS, which takes the first algorithm of its heuristics. cuBLASLt lists them all, including those
that want a workspace of up to WORKSPACE_BYTES. Called through nvmath-python's bindings of cublasLt.h.
"""

import functools
from typing import Any

import numpy as np

from warpcourse.bench.timing import Candidate, time_gpu, time_together

WORKSPACE_BYTES = 64 * 2**20
MOST = 32  # algorithms to ask for
FINALISTS = 4
_TYPES = {"float16": "CUDA_R_16F", "float32": "CUDA_R_32F", "bfloat16": "CUDA_R_16BF", "e4m3": "CUDA_R_8F_E4M3"}


class Product:
    """C = A · B by cuBLASLt: A (m × k) and B (k × n), `operands` each, C of `dtype`, all row-major; sums in float32.

    Types: float16, float32, which is not rounded to TF32, "bfloat16", and of operands "e4m3". `transposed`: of A and B
    each "N" or "T", as BLAS says: with "T", A is given as (k, m), B as (n, k). `fast`: sums of e4m3 are left to the
    tensor cores' 13 bits. `results`: the library's algorithms (`MatmulHeuristicResult`),
    the one that it expects to be fastest first.
    Raises `nvmath.bindings.cublasLt.cuBLASLtError` where the library refuses the product.
    """

    def __init__(
        self,
        m: int,
        n: int,
        k: int,
        dtype: Any = np.float16,
        operands: Any = np.float16,
        transposed: str = "NN",
        *,
        fast: bool = False,
    ) -> None:
        from nvmath import CudaDataType
        from nvmath.bindings import cublas, cublasLt

        given, kind = (
            getattr(CudaDataType, _TYPES[each if isinstance(each, str) else np.dtype(each).name])
            for each in (operands, dtype)
        )
        self._operation = cublasLt.matmul_desc_create(cublas.ComputeType.COMPUTE_32F, CudaDataType.CUDA_R_32F)
        if fast:
            yes = np.ones(1, np.int8)
            attribute = cublasLt.MatmulDescAttribute.FAST_ACCUM
            cublasLt.matmul_desc_set_attribute(self._operation, attribute, yes.ctypes.data, yes.nbytes)
        # The library stores matrices by columns: it multiplies Bᵀ by Aᵀ, which are the same bytes.
        turned = [letter == "T" for letter in transposed]
        attributes = cublasLt.MatmulDescAttribute.TRANSB, cublasLt.MatmulDescAttribute.TRANSA
        for attribute, turn in zip(attributes, turned, strict=True):
            value = np.array([cublas.Operation.T if turn else cublas.Operation.N], np.int32)
            cublasLt.matmul_desc_set_attribute(self._operation, attribute, value.ctypes.data, value.nbytes)
        of_a, of_b = (k, m), (n, k)
        sizes = ((given, *of_b[:: -1 if turned[1] else 1]), (given, *of_a[:: -1 if turned[0] else 1]), (kind, n, m))
        self._layouts = [cublasLt.matrix_layout_create(t, rows, columns, rows) for t, rows, columns in sizes]
        self.results = self._ask()

    def _ask(self) -> list[Any]:
        from nvmath.bindings import cublasLt

        preference = cublasLt.matmul_preference_create()
        limit = np.array([WORKSPACE_BYTES], np.uint64)
        attribute = cublasLt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES
        cublasLt.matmul_preference_set_attribute(preference, attribute, limit.ctypes.data, limit.nbytes)
        results, found = cublasLt.MatmulHeuristicResult(MOST), np.zeros(1, np.int32)
        b, a, c = self._layouts
        cublasLt.matmul_algo_get_heuristic(
            _handle(), self._operation, b, a, c, c, preference, MOST, results.ptr, found.ctypes.data
        )
        cublasLt.matmul_preference_destroy(preference)
        return [results[i] for i in range(found[0]) if results[i].state == 0]

    def launch(self, a: Any, b: Any, c: Any, result: Any = None) -> None:
        """Queue the product on CuPy's current stream, by default with the library's first algorithm."""
        import cupy
        from nvmath.bindings import cublasLt

        one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
        of_b, of_a, of_c = self._layouts
        cublasLt.matmul(
            _handle(),
            self._operation,
            one.ctypes.data,
            b.data.ptr,
            of_b,
            a.data.ptr,
            of_a,
            zero.ctypes.data,
            c.data.ptr,
            of_c,
            c.data.ptr,
            of_c,
            (result or self.results[0]).ptr,  # the algorithm is the first field of the result
            _workspace().data.ptr,
            WORKSPACE_BYTES,
            cupy.cuda.get_current_stream().ptr,
        )

    def fastest(self, *sets: tuple[Any, Any, Any]) -> Any:
        """Return the fastest algorithm on sets of matrices (a, b, c): all run a few times, then the best take turns."""

        def candidate(result: Any) -> Candidate:
            return Candidate(self.launch, [(*arrays, result) for arrays in sets])

        seconds = [time_gpu(self.launch, candidate(result).arguments, runs=3).seconds for result in self.results]
        finalists = sorted(range(len(seconds)), key=seconds.__getitem__)[:FINALISTS]
        candidates = {str(i): candidate(self.results[i]) for i in finalists}
        timings = time_together(candidates, rounds=4, runs=3, warmup=1)
        return self.results[int(min(timings, key=lambda i: timings[i].seconds))]


def version() -> str:
    """Return the version of the library that is loaded, such as "13.1.0"."""
    from nvmath.bindings import cublasLt

    number = cublasLt.get_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


@functools.cache
def _handle() -> int:
    from nvmath.bindings import cublasLt

    return cublasLt.create()


@functools.cache
def _workspace() -> Any:
    import cupy

    return cupy.empty(WORKSPACE_BYTES, cupy.uint8)
