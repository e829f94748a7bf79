"""Kernels of NVIDIA's CuTe DSL, run by the PTX that `cute.compile` gives."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

SEED = 0


def kernels(clone: None) -> Iterator[tuple]:
    """Yield the kernels."""
    yield "elementwise sum of 1024 floats", "elementwise"
    yield "product of 16 × 8 × 16 on tensor cores", "tensor_cores"


def _ptx(function: Any, *tensors: Any) -> str:
    import cutlass.cute as cute

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where it leaves the PTX in a file
        return cute.compile(function, *tensors, options="--keep-ptx --generate-line-info").__ptx__


def elementwise() -> None:
    """Add two vectors."""
    os.environ["CUTE_DSL_ARCH"] = "sm_90a"
    from cutlass import Float32
    from cutlass.cute.runtime import make_fake_compact_tensor

    from evidence.front_ends import cute_kernels
    from warplab.launch.kernel_source import PtxSource
    from warplab.launch.profiling import record
    from warplab.launch.simulate import simulate

    vector = make_fake_compact_tensor(Float32, (1024,))
    a, b = np.random.default_rng(SEED).standard_normal((2, 1024)).astype(np.float32)
    out = np.zeros(1024, np.float32)
    record(simulate(PtxSource(_ptx(cute_kernels.add, vector, vector, vector)), 4, 256, (a, b, out)))
    np.testing.assert_array_equal(out, a + b)


def tensor_cores() -> None:
    """Multiply two small matrices of FP16 by one mma.sync."""
    os.environ["CUTE_DSL_ARCH"] = "sm_90a"
    from cutlass import Float16, Float32
    from cutlass.cute.runtime import make_fake_compact_tensor

    from evidence.front_ends import cute_kernels
    from warplab.launch.kernel_source import PtxSource
    from warplab.launch.profiling import record
    from warplab.launch.simulate import simulate

    left = make_fake_compact_tensor(Float16, (16, 16), stride_order=(1, 0))
    right = make_fake_compact_tensor(Float16, (8, 16), stride_order=(1, 0))
    result = make_fake_compact_tensor(Float32, (16, 8), stride_order=(1, 0))
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (8, 16)))
    out = np.zeros((16, 8), np.float32)
    launch = simulate(PtxSource(_ptx(cute_kernels.multiply, left, right, result)), 1, 32, (a, b, out))
    record(launch)
    np.testing.assert_allclose(out, a.astype(np.float32) @ b.astype(np.float32).T, rtol=1e-3, atol=1e-3)
    if not launch.counts.tensor_operations:
        raise AssertionError("no tensor operation was counted")


PROGRAMS = {"cute": kernels}
