"""On a GPU: instructions and libraries whose results are not recorded, against the simulator's, bit for bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support.ptx_harness import ptx_of
from tests.support.ptx_harness import run as run_ptx
from tests.warplab.simulator.ptx import test_inlining
from tests.warplab.simulator.run import test_compare_and_swap
from tests.warplab.simulator.run import test_libraries as libraries
from warplab.compile.nvrtc import compile_cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

pytestmark = pytest.mark.gpu

X, PARTS = libraries.X, np.tile(libraries.X, 2)
KEYS = np.random.default_rng(1).normal(size=256).astype("f4")
BITS = np.random.default_rng(2).integers(1, 1 << 32, 32, dtype="u4")


def zeros(n: int, dtype: str = "i4") -> np.ndarray:
    return np.zeros(n, dtype)


# Kernels whose results do not depend on the order in which warps come: source, name, threads, arguments.
KERNELS = [
    (libraries.GROUPS, "reduce", 64, (X[:64], KEYS[:64].astype("f8"), zeros(64), zeros(64, "f8"))),
    (libraries.GROUPS, "by_label", 32, (X[:32], zeros(32))),
    (libraries.GROUPS, "one_of_them", 64, (zeros(65),)),
    (libraries.GROUPS, "copies", 256, (X, zeros(256))),
    (libraries.GROUPS, "arrive_then_wait", 64, (X[:64],)),
    (libraries.GROUPS, "producers", 64, (X, zeros(32))),
    (libraries.GROUPS, "latch_and_semaphore", 64, (zeros(65),)),
    (libraries.CUB, "reduce", 128, (PARTS, zeros(2))),
    (libraries.CUB, "scan", 128, (PARTS, zeros(512))),
    (libraries.CUB, "sort", 128, (KEYS, zeros(256, "f4"), zeros(256))),
    (libraries.CUB, "histogram", 128, (X.astype("u1"), zeros(256, "u4"))),
    (libraries.CUB, "warps", 128, (X, zeros(8), zeros(128, "f8"))),
    (libraries.STANDARD, "containers", 32, (X[:32], zeros(32))),
    (libraries.STANDARD, "bits", 32, (BITS, zeros(32, "u4"))),
    (test_compare_and_swap.WIDE, "own", 32, (np.zeros(512, "u1"),)),
]


def on_gpu(ptx: str, name: str, threads: int, arguments: tuple, folder) -> list[np.ndarray]:
    import cupy

    path = folder / f"{name}.ptx"  # CuPy remembers modules by path
    path.write_text(ptx)
    arrays = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    cupy.RawModule(path=str(path)).get_function(name)((1,), (threads,), tuple(arrays))
    return [cupy.asnumpy(a) for a in arrays if isinstance(a, cupy.ndarray)]


@pytest.mark.parametrize(("code", "name", "threads", "arguments"), KERNELS, ids=[k[1] for k in KERNELS])
def test_kernels_of_libraries(code, name, threads, arguments, tmp_path):
    options = ("--device-int128",)
    simulated = [a.copy() for a in arguments]
    simulate(CudaSource(code, name, options), 1, threads, tuple(simulated))
    results = on_gpu(compile_cuda(code, options=options), name, threads, arguments, tmp_path)
    for seen, want in zip(simulated, results, strict=True):
        np.testing.assert_array_equal(seen, want)


def test_complex_numbers(tmp_path):
    """The last bit is ptxas' choice: it fuses a product and the difference that takes it."""
    arguments = KEYS[:64].astype("f8"), zeros(64, "f8")
    simulated = [a.copy() for a in arguments]
    simulate(CudaSource(libraries.STANDARD, "complex"), 1, 32, tuple(simulated))
    _, want = on_gpu(compile_cuda(libraries.STANDARD), "complex", 32, arguments, tmp_path)
    np.testing.assert_array_max_ulp(simulated[1], want, 2)


def test_find_the_nth_one(tmp_path):
    masks = [0, 1, 1 << 31, 0xFFFFFFFF, 0x00F0F00F, 0x80000001]
    bases = [0, 1, 4, 15, 31]
    offsets = [0, 1, 2, 5, 32, 33, -1, -2, -7, -32, -(1 << 31)]
    a, b, c = (np.array(v, "i8").astype("u4") for v in zip(*itertools.product(masks, bases, offsets), strict=True))
    body = "fns.b32 %d, %a, %b, %c;"
    simulated = run_ptx(body, [("b32", a), ("b32", b), ("b32", c)], "b32")
    arguments = (a, b, c, zeros(a.size, "u4"), np.uint32(a.size))
    *_, want = on_gpu(ptx_of(body, ["b32"] * 3, "b32"), "kernel", a.size, arguments, tmp_path)
    np.testing.assert_array_equal(simulated, want)


def test_jumps_by_number(tmp_path):
    (want,) = on_gpu(test_inlining.HEADER + ".visible" + test_inlining.SWITCH, "k", 4, (zeros(4, "u4"),), tmp_path)
    assert test_inlining.launch(test_inlining.SWITCH, 4, 4).tolist() == want.tolist()
