"""What a measurement multiplies, and cuBLAS, which it is compared with."""

from typing import Any

import numpy as np

from warpcourse.bench.timing import cupy_on_gpu


def operands(m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    """Return random matrices a and b, from -1 to 1, and room for their product."""
    cupy = cupy_on_gpu()
    a, b = (cupy.random.uniform(-1, 1, shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    return a, b, cupy.empty((m, n), np.float32)


def cublas(a: Any, b: Any, c: Any) -> None:
    """Queue the same product by cuBLAS, in float32; that it is not TF32 shows in the error (`checked`)."""
    import cupy

    cupy.matmul(a, b, out=c)
