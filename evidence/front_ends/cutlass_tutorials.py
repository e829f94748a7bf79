"""CuTe's tutorials for Blackwell (CUTLASS, examples/cute/tutorial/blackwell) in the simulator.

    python -m evidence.front_ends.cutlass_tutorials CUTLASS_CLONE [01 02 ...]

Each kernel is compiled as it stands by NVRTC, for sm_100a; of its host function what makes layouts and TMA atoms
is compiled with it, as the types come from there. Two things are changed: the kernel becomes a function that
one kernel of ours calls (which hands over maps as they come from the driver), and its `print`s go. `MENDED` adds the
waits and fences that the simulator asks for, where it does. No GPU of this kind was at hand.

With CUTLASS at 7107b0553, on 2026-11-26: 02 loads by TMA, multiplies, and stops at its `axpby`, since no
`tcgen05.wait::ld` follows the loads from tensor memory (CUTLASS's `fence_view_async_tmem_load`), as nothing in the file
does that. With that wait, 02 (TMA), 03 (multicast in clusters of 16), 04 (pairs of blocks, cta_group::2) and 05 (the
epilogue by TMA) give right results: largest errors of 1.4e-5 to 1.9e-5 in sums of 128 products, 17 to 29 s each.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np

from warpcourse.bench import hopper
from warplab import CudaSource, simulator
from warplab.compile.headers import include_folders

TILE_K = 64
HEADER = """
#include <cute/tensor.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/numeric/integral_constant.hpp>
#include <cute/algorithm/cooperative_copy.hpp>
#include <cute/arch/tmem_allocator_sm100.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/numeric_types.h>
using namespace cute;
struct alignas(128) Map { char bytes[128]; };
"""
# By file: rows and columns of C, cluster, rows of the boxes of A and B, what the kernel also takes maps of.
SHAPES = {
    "01_mma_sm100": ((128, 256), None, None, ""),
    "02_mma_tma_sm100": ((128, 256), None, (128, 256), "AB"),
    "03_mma_tma_multicast_sm100": ((512, 1024), (4, 4, 1), (32, 64), "AB"),
    "04_mma_tma_2sm_sm100": ((512, 1024), (4, 4, 1), (32, 64), "AB"),
    "05_mma_tma_epi_sm100": ((512, 1024), (4, 4, 1), (32, 64), "ABCD"),
}
DEPTH = 128
FENCE = 'asm volatile("fence.proxy.async.shared::cta;");'
MENDED = {
    # Threads store A and B with ordinary stores, and the tensor core reads them through the asynchronous proxy.
    "01_mma_sm100": [(r"(cooperative_copy<128>\(threadIdx.x, tCgB[^\n]*\n)", rf"\1{FENCE}\n")],
}
WAIT = (r"(copy\((?:tiled_)?t2r_copy, [^;]*;)", r"\1 cutlass::arch::fence_view_async_tmem_load();")


def atoms_for_pairs(clone: Path) -> str:
    """Return what makes TMA atoms for pairs of blocks, which CUTLASS hides from NVRTC, though types come from there."""
    text = (clone / "include/cute/atom/copy_traits_sm100_tma.hpp").read_text(encoding="utf-8")
    _, _, text = text.partition("#if !defined(__CUDACC_RTC__)\n/**")
    text, found, _ = text.partition("#endif // !defined(__CUDACC_RTC__)")
    assert found
    text = text.replace("CUTE_HOST\n", "CUTE_HOST_RTC\n")
    return f"namespace cute {{\n/**{text}\n}}\n"


def source(text: str, name: str, mend: bool, of_host: str) -> str:
    """Return the file's kernel with one of ours around it. `of_host`: what its host function needs."""
    (m, n), _, _, maps = SHAPES[name]
    first = text.index("template <class TypeA,           // Tensor A")
    host = text.index("template <class TypeA, class LayoutA")
    kernel = without_prints(text[first:host]).replace("__global__ static", "__device__")
    kernel = re.sub(r"CUTE_GRID_CONSTANT (\w+) const (\w+)", r"\1 const& \2", kernel)
    for pattern, more in (*MENDED.get(name, ()), WAIT) if mend else ():
        kernel, count = re.subn(pattern, more, kernel)
        assert count, pattern
    body = text[host:]
    body = without_prints(body[body.index("  TiledMMA tiled_mma =") : body.index("  dim3 dimBlock")])
    body = re.sub(r"  if \(not evenly_divides.*?\n  }\n", "", body, flags=re.DOTALL)
    parameters = "".join(f", const __grid_constant__ Map map_{x}" for x in maps)
    atoms = "".join(f", reinterpret_cast<decltype(tma_atom_{x}) const&>(map_{x})" for x in maps)
    tensors = ", ".join(f"m{x}_tma" if x in maps else f"m{x}" for x in "ABCD")
    epilogue = ", epi_tiler" if "C" in maps else ""
    made = "".join(
        f"  auto m{x} = make_tensor(make_gmem_ptr({x}), make_layout(make_shape(Int<{rows}>{{}}, Int<{columns}>{{}}), "
        f"make_stride(Int<{columns}>{{}}, Int<1>{{}})));\n"
        for x, rows, columns in (("A", m, DEPTH), ("B", n, DEPTH), ("C", m, n), ("D", m, n))
    )
    return f"""{HEADER}{of_host}{kernel}
using TypeA = cutlass::half_t; using TypeB = TypeA; using TypeC = float; using TypeD = float;
extern "C" __global__ void run(TypeA const* A, TypeB const* B, float const* C, float* D{parameters}) {{
{made}{body}
  gemm_device<SMEMStorage>({tensors}, mma_tiler{epilogue}, tiled_mma, cluster_shape{atoms}, 1.0f, 2.0f);
}}
"""


def without_prints(code: str) -> str:
    code = "\n".join(line for line in code.splitlines() if not re.search(r"\bprintf?\(", line))
    return re.sub(r"if \(thread0\(\)\) \{\s*\} __syncthreads\(\);", "", code)


def run(clone: Path, name: str, mend: bool) -> str:
    """Return what came of one file."""
    text = (clone / "examples/cute/tutorial/blackwell" / f"{name}.cu").read_text(encoding="utf-8")
    (m, n), cluster, boxes, maps = SHAPES[name]
    folders = [clone / "include", *include_folders(), *(f"{folder}/cccl" for folder in include_folders())]
    options = ("-arch=sm_100a", "-std=c++17", "-default-device", *(f"-I{folder}" for folder in folders))
    kernel = CudaSource(source(text, name, mend, atoms_for_pairs(clone)), "run", options)
    rng = np.random.default_rng(35)
    a, b = (rng.standard_normal((rows, DEPTH)).astype(np.float16) for rows in (m, n))
    c = rng.standard_normal((m, n)).astype(np.float32)
    device = simulator.Device()
    places = []
    for array in (a, b, c, np.zeros((m, n), np.float32)):
        address = device.allocate(array.nbytes)
        device.memory.view(address, array.nbytes)[:] = array.view(np.uint8).reshape(-1)
        device.memory.mark_initialized(address, array.nbytes)
        places.append(address)
    given = dict(zip("ABCD", places, strict=True))
    sizes = {"A": (m, DEPTH, "float16"), "B": (n, DEPTH, "float16"), "C": (m, n, "float32"), "D": (m, n, "float32")}
    encoded = []
    for x in maps:
        rows, columns, kind = sizes[x]
        box = (boxes["AB".index(x)], TILE_K) if x in "AB" else (128, 32)
        encoded.append(hopper.encoded(hopper.Boxes(given[x], kind, rows, columns, *box)))
    blocks = cluster or (m // 128, n // 256, 1)
    parameters = [*(place.to_bytes(8, "little") for place in places), *(bytes(one) for one in encoded)]
    started = time.process_time()
    try:
        device.launch(
            kernel.load(), blocks, (128, 1, 1), parameters, shared_bytes=200_000,
            options=simulator.Options(cluster=cluster, wide_clusters=True, counters=False),
        )  # fmt: skip
    except simulator.SimulatorError as error:
        return f"{type(error).__name__}: {error}"
    d = device.memory.view(places[3], 4 * m * n).view(np.float32).reshape(m, n)
    error = np.abs(d - (a.astype(float) @ b.astype(float).T + 2 * c)).max()
    return f"largest error {error:.1e} of {m} × {n} × {DEPTH}, {time.process_time() - started:.0f} s"


if __name__ == "__main__":
    for name in [n for n in SHAPES if not sys.argv[2:] or n[:2] in sys.argv[2:]]:
        for mend in (False, True):
            print(f"{name}{', mended' if mend else ''}: {run(Path(sys.argv[1]), name, mend)}", flush=True)
