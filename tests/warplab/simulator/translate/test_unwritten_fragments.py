"""Fragments that nothing filled are reported where they are used, for the lanes concerned, and never those that were.

test_defects.py checks the error's class and location; these tests cover how compilers and kernels leave, or do not
leave, registers unwritten.
"""

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

HEAD = '#include <cuda_fp16.h>\n#include <mma.h>\nusing namespace nvcuda::wmma;\nextern "C" __global__ '
KERNEL = "void kernel(const half* a, const half* b, float* c, int k) {\n"
FRAGMENTS = """\
  fragment<matrix_a, 16, 16, 16, half, row_major> of_a;
  fragment<matrix_b, 16, 16, 16, half, row_major> of_b;
  fragment<accumulator, 16, 16, 16, float> sum;
"""
LOADS = "load_matrix_sync(of_a, a + s, k); load_matrix_sync(of_b, b + 16 * s, 16);"
STORE = "  store_matrix_sync(c, sum, 16, mem_row_major);"
LOOP = "  for (int s = 0; s < k; s += 16) {{ {} mma_sync(sum, of_a, of_b, sum); }}\n"
MMA = """\
  unsigned x[4], y[2];
  float d[4];
  for (int i = 0; i < 4; i++) x[i] = ((const unsigned*)a)[threadIdx.x + 32 * i];
  for (int i = 0; i < 2; i++) y[i] = ((const unsigned*)b)[threadIdx.x + 32 * i];
  for (int i = 0; i < 4; i++) { FILL }
  for (int s = 0; s < k; s += 16) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }
  for (int i = 0; i < 4; i++) c[4 * threadIdx.x + i] = d[i];"""
UNFILLED = {
    "loop": (FRAGMENTS + LOOP.format(LOADS) + STORE, "sum C of `wmma.mma`"),
    "no loop": (FRAGMENTS + "  int s = 0;\n" + LOADS + " mma_sync(sum, of_a, of_b, sum);\n" + STORE, "sum C"),
    "stored only": (FRAGMENTS + STORE, "the matrix that `wmma.store` stores"),
    "factor": (
        FRAGMENTS + "  fill_fragment(sum, 0.0f);\n" + LOOP.format(LOADS.split("; ")[1]) + STORE,
        "factor A of `wmma.mma`",
    ),
    "half": (
        (FRAGMENTS + LOOP.format(LOADS) + STORE).replace("16, float>", "16, half>").replace("(c,", "((half*)c,"),
        "sum C",
    ),
    "mma": (MMA.replace("FILL", ""), "sum C of `mma`"),
}
FILLED = {
    # Filled at the first step only: the register is unwritten on a way through the program that nobody goes.
    "at the first step": FRAGMENTS
    + LOOP.format(LOADS + " if (s + 1 == __half2int_rz(a[1023])) fill_fragment(sum, 0.0f);")
    + "  if (k > 0)"
    + STORE,
    "behind the same condition": FRAGMENTS
    + "  if (k > 16) fill_fragment(sum, c[0]);\n  __syncthreads();\n"
    + "  if (k > 16) {\n  "
    + LOOP.format(LOADS)
    + STORE
    + "\n  }",
    "mma": MMA.replace("FILL", "d[i] = 0;"),
}


def run(body: str, k: int, **options) -> np.ndarray:
    c = np.zeros(512, np.float32)
    simulate(
        CudaSource(HEAD + KERNEL + body + "\n}\n", "kernel"),
        1,
        32,
        (np.ones(1024, np.float16), np.ones(1024, np.float16), c, np.int32(k)),
        **options,
    )
    return c


@pytest.mark.parametrize("k", [16, 64], ids=lambda k: f"k={k}")  # the compiler unrolls four steps, and a rest
@pytest.mark.parametrize("name", UNFILLED)
def test_unfilled_is_reported(name, k):
    body, what = UNFILLED[name]
    with pytest.raises(simulator.UninitializedRead) as caught:
        run(body, k)
    assert what in caught.value.what
    assert "was never " + ("loaded" if "factor" in what else "filled") in caught.value.reason
    assert caught.value.thread == (0, 0, 0)
    assert caught.value.array is None


@pytest.mark.parametrize("name", FILLED)
def test_filled_is_silent(name):
    assert np.all(run(FILLED[name], 64)[:128] == 64)


def test_only_some_lanes_filled():
    """Lanes 5 and up leave their registers unwritten, and moves pass that on."""
    body = MMA.replace("FILL", 'asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; @p mov.f32 %0, 0f00000000; }" '
                       ': "=f"(d[i]) : "r"(threadIdx.x));')  # fmt: skip
    with pytest.raises(simulator.UninitializedRead, match="sum C of `mma`") as caught:
        run(body, 16)
    assert caught.value.thread == (5, 0, 0)


def test_silent_with_checks_off():
    assert np.all(run(UNFILLED["loop"][0], 32, checks=False)[:256] == 32)
