"""What the simulator objects to in a kernel with wgmma: each mistake, and that the right kernel has none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ptx_harness import put
from tests.support.race_twins import compare_races
from tests.support.random_inputs import generator
from tests.support.warpgroup_cases import Case, kernel, placed
from warpcourse.bench import hopper
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

# A (64 × 64, K-major) and B (64 of k × 64, N-major) lie swizzled in shared memory; two groups of products use half of k
# each.
SOURCE = """
#include <warplab/hopper.cuh>
#include <cuda_fp16.h>

extern "C" __global__ void product(const half *a, const half *b, float *c, int at) {
    __shared__ alignas(1024) unsigned char tiles[2][64 * LINE_BYTES];
    const unsigned of_a = shared_address(tiles[0]), of_b = shared_address(tiles[1]);
    for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x) {
        const int to = i / 8 * LINE_BYTES + (i % 8 ^ i / 8 % 8) * 16;
        *reinterpret_cast<uint4 *>(tiles[0] + to) = reinterpret_cast<const uint4 *>(a)[i];
        *reinterpret_cast<uint4 *>(tiles[1] + to) = reinterpret_cast<const uint4 *>(b)[i];
    }
    fence_for_tma();
    __syncthreads();
    float sum[32];
    // start
    for (int i = 0; i < 32; i++) sum[i] = 0;
    wgmma_fence();
    wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(of_a, 0, 0), mn_major(of_b, 0, 64), 1);
    wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(of_a, 0, 16), mn_major(of_b, 16, 64), 1);
    wgmma_commit();
    // between
    wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(of_a, 0, 32), mn_major(of_b, 32, 64), 1);
    wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(of_a, 0, 48), mn_major(of_b, 48, 64), 1);
    wgmma_commit();
    // end
    wgmma_wait<0>();
    settle(sum);
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 32; i++) c[(row + i / 2 % 2 * 8) * 64 + i / 4 * 8 + column + i % 2] = sum[i];
}
"""
LAST_WAIT = "    wgmma_wait<0>();\n"
FENCE = "    wgmma_fence();\n"


@pytest.fixture(autouse=True)
def by_code(monkeypatch):
    return compare_races(monkeypatch)


def run(source: str = SOURCE, threads: int = 128, at: int = 0) -> None:
    random = generator()
    a, b = (random.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    options = "-arch=sm_90a", *hopper.include()
    simulate(CudaSource(source, "product", options), 1, threads, (a, b, c, np.int32(at)))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def changed(old: str, new: str) -> str:
    assert SOURCE.count(old) == 1
    return SOURCE.replace(old, new)


def test_the_right_kernel_is_silent(by_code):
    run()
    run(changed("// between", "wgmma_wait<0>(); settle(sum); wgmma_fence();"))
    run(changed("// between", "wgmma_wait<1>();"))
    run(
        changed("// between", "wgmma_wait<0>(); settle(sum); for (int i = 0; i < 32; i++) sum[i] += at; wgmma_fence();")
    )
    assert sum(by_code) > len(by_code) // 2


def test_a_warpgroup_may_write_what_it_has_read_as_soon_as_it_has_waited():
    """No barrier stands between, and the kernel has no mbarrier: as ThunderKittens' level_05.cu."""
    again = "reinterpret_cast<int *>(tiles[1])[threadIdx.x % 128] = at;\n"
    run(changed(LAST_WAIT, f"{LAST_WAIT}settle(sum); {again}"))
    with pytest.raises(simulator.DataRace):
        run(changed("// start", f"if (threadIdx.x >= 128) {{ {again} fence_for_tma(); return; }}"), threads=256)


@pytest.mark.parametrize(
    ("source", "what", "reason"),
    [
        (
            changed(LAST_WAIT, ""),
            "`st.global.* reads a sum of a wgmma that may still be under way",
            "wgmma.wait_group N",
        ),
        (
            changed(LAST_WAIT, "    wgmma_wait<1>();\n"),
            "`st.global.* reads a sum of a wgmma that may still be under way",
            "wgmma.wait_group N",
        ),
        (
            changed("// between", "if (at) c[0] = sum[0];"),
            "reads a sum of a wgmma that may still be under way",
            "wgmma.wait_group N",
        ),
        (changed(FENCE, ""), "`wgmma.mma_async.* before any wgmma.fence", "Put a wgmma.fence"),
        (
            changed("// between", "wgmma_wait<0>(); settle(sum); for (int i = 0; i < 32; i++) sum[i] += at;"),
            "its sums were accessed since the latest wgmma.fence",
            "Put a wgmma.fence",
        ),
    ],
)
def test_registers_belong_to_the_product(source, what, reason):
    with pytest.raises(simulator.UnorderedRegisters, match=what) as caught:
        run(source, at=1)
    assert reason in caught.value.reason
    assert caught.value.line is not None


def test_sums_need_a_start():
    source = changed("    for (int i = 0; i < 32; i++) sum[i] = 0;\n", "")
    with pytest.raises(simulator.UninitializedRead, match=r"sum C of `wgmma\.mma_async` is in registers that nothing"):
        run(source)
    first = "mn_major(of_b, 0, 64), 1"
    run(source.replace(first, "mn_major(of_b, 0, 64), 0"))
    run(source.replace(first, "mn_major(of_b, 0, 64), at"), at=0)
    with pytest.raises(simulator.UninitializedRead, match="scale-d must be false in the first product"):
        run(source.replace(first, "mn_major(of_b, 0, 64), at"), at=1)


def test_registers_may_be_read_on_ways_without_products():
    """What cannot be told from the control flow alone: the wait is under the same condition as the products."""
    first = "    wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(of_a, 0, 0)"
    source = changed(first, "    if (at == 0) {\n" + first)
    source = source.replace("    // end\n" + LAST_WAIT, "    wgmma_wait<0>();\n    }\n")
    run(source)
    with pytest.raises(AssertionError):
        run(source, at=1)


def test_all_four_warps_must_come():
    with pytest.raises(simulator.DivergentWarp, match="with 96 of the 128 threads of a warpgroup") as caught:
        run(changed("    // start", "    if (threadIdx.x >= 96) return;"))
    assert "four warps in a row" in caught.value.reason
    with pytest.raises(simulator.DivergentWarp, match="of the 128 threads of a warpgroup"):
        run(threads=96)
    # Two of the four come by another way: they meet at different instructions.
    source = changed(FENCE, "    if (threadIdx.x < 64) { wgmma_fence(); } else { wgmma_fence(); }\n")
    never = "waits for threads of its warpgroup that never come: 64 of 128 are there"
    with pytest.raises(simulator.DivergentWarp, match=never):
        run(source)


def test_all_threads_must_give_the_same():
    source = changed("k_major(of_a, 0, 48)", "k_major(of_a, threadIdx.x / 64 * 8, 48)")
    with pytest.raises(simulator.SimulatorError, match="different values of A's descriptor"):
        run(source)
    source = changed("mn_major(of_b, 48, 64), 1", "mn_major(of_b, 48, 64), threadIdx.x < 100")
    with pytest.raises(simulator.SimulatorError, match="different values of scale-d"):
        run(source)


@pytest.mark.parametrize(
    ("by", "how", "error", "what"),
    [
        (
            0,
            "int",
            simulator.DataRace,
            r"byte 14192 .* `tiles`.* which thread \(0, 0, 0\) .* may still read at line",
        ),
        (0, "volatile int", simulator.DataRace, r"which thread \(0, 0, 0\) .* may still read at line"),
        (77, "int", simulator.DataRace, r"thread \(77, 0, 0\) .* writes .* which thread \(0, 0, 0\) .* read at line"),
    ],
)
def test_tiles_must_stay_until_the_product_is_over(by, how, error, what):
    write = f"if (threadIdx.x == {by}) {{ *reinterpret_cast<{how} *>(tiles[1] + 6000) = 7; }}"
    with pytest.raises(error, match=what):
        run(changed("// end", write))
    run(changed("    settle(sum);\n", "    settle(sum);\n    __syncthreads();\n    " + write + "\n"))


def test_operands_must_lie_in_the_blocks_shared_memory():
    with pytest.raises(simulator.IllegalAddress, match="shared memory"):
        run(changed("mn_major(of_b, 48, 64)", "mn_major(of_b, 64, 64)"))
    with pytest.raises(simulator.UninitializedRead, match="never written"):
        run(changed("i < 64 * 8; i", "i < 63 * 8; i"))


# -- stages that one warpgroup fills and others release ----------------------------------------------------------------

PIPELINE = """
#include <warplab/hopper.cuh>
#include <cuda_fp16.h>

extern "C" __global__ void product(const half *a, float *c, int steps) {
    __shared__ alignas(1024) unsigned char tiles[2][64 * LINE_BYTES];
    __shared__ unsigned long long full[2], empty[2];
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; s++) {
            barrier_init(shared_address(&full[s]), FILLERS);
            barrier_init(shared_address(&empty[s]), blockDim.x / 32 - 4);
        }
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x < FILLERS) {
        for (int n = 0; n < steps; n++) {
            const unsigned here = shared_address(&full[n % 2]), to = shared_address(tiles[n % 2]);
            barrier_wait(shared_address(&empty[n % 2]), n / 2 % 2 ^ 1);
            // fill
        }
    }
    if (threadIdx.x < 128) return;
    auto release = [&](int n) {
        if (threadIdx.x % 32 == 0) barrier_arrive(shared_address(&empty[n % 2]));
    };
    float sum[32];
    for (int i = 0; i < 32; i++) sum[i] = 0;
    for (int n = 0; n < steps; n++) {
        const unsigned tile = shared_address(tiles[n % 2]);
        barrier_wait(shared_address(&full[n % 2]), n / 2 % 2);
        wgmma_fence();
        for (int k = 0; k < 64; k += 16) wgmma<K_MAJOR, MN_MAJOR>(sum, k_major(tile, 0, k), mn_major(tile, k, 64), 1);
        wgmma_commit();
        // used
    }
    wgmma_wait<0>();
    settle(sum);
    for (int i = 0; i < 32; i++) c[(threadIdx.x - 128) * 32 + i] = sum[i];
}
"""
BY_TMA = (
    1,
    """
            barrier_expect(here, 8192);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 8192, [%2];"
                         :: "r"(to), "l"(a + n * 4096), "r"(here) : "memory");""",
)
BY_STORES = (
    128,
    """
            for (int i = threadIdx.x; i < 512; i += 128) {
                reinterpret_cast<uint4 *>(tiles[n % 2])[i] = reinterpret_cast<const uint4 *>(a + n * 4096)[i];
            }
            fence_for_tma();
            barrier_arrive(here);""",
)
BY_INTS = (
    128,
    BY_STORES[1].replace("512", "2048").replace("uint4", "int"),
)
AT_ONCE = "wgmma_wait<0>(); release(n);"
ONE_BEHIND = "wgmma_wait<1>(); if (n > 0) release(n - 1);"


def pipeline(filled: tuple[int, str], used: str, warpgroups: int, source: str = PIPELINE) -> None:
    a = generator().integers(-3, 4, (5, 64, 64)).astype(np.float16)
    c = np.zeros((warpgroups, 128 * 32), np.float32)
    code = source.replace("FILLERS", str(filled[0])).replace("// fill", filled[1]).replace("// used", used)
    source = CudaSource(code, "product", ("-arch=sm_90a", *hopper.include()))
    simulate(source, 1, 128 * (1 + warpgroups), (a, c, np.int32(5)))
    np.testing.assert_array_equal(c, np.broadcast_to(c[:1], c.shape))


@pytest.mark.parametrize("filled", [BY_TMA, BY_STORES, BY_INTS], ids=["TMA", "stores", "words"])
@pytest.mark.parametrize("used", [AT_ONCE, ONE_BEHIND], ids=["at once", "one behind"])
def test_stages_released_after_the_wait_are_right(filled, used):
    pipeline(filled, used, 2)


@pytest.mark.parametrize("warpgroups", [1, 2, 3])
@pytest.mark.parametrize(
    ("filled", "used"),
    [
        (BY_TMA, "release(n); wgmma_wait<0>();"),
        (BY_STORES, "release(n); wgmma_wait<0>();"),
        (BY_INTS, "release(n); wgmma_wait<0>();"),
        (BY_TMA, "if (n > 0) release(n - 1); wgmma_wait<1>();"),
        (BY_TMA, "wgmma_wait<1>(); release(n);"),
    ],
    ids=["TMA", "stores", "words", "the stage before", "one too young"],
)
def test_stages_released_before_the_wait_are_reported(filled, used, warpgroups):
    """What loads and stores by several warpgroups hide: each has read the stage before, and said so."""
    what = r"writes byte \d+ of shared memory \(element \d+ of `tiles`\), which .* read at line \d+ by `wgmma.mma_async"
    with pytest.raises(simulator.DataRace, match=what) as caught:
        pipeline(filled, used, warpgroups)
    assert caught.value.array == "tiles"
    assert "where the writer waits, after wgmma.wait_group" in caught.value.reason


@pytest.mark.parametrize("filled", [BY_TMA, BY_STORES, BY_INTS], ids=["TMA", "stores", "words"])
def test_a_stage_released_just_before_its_product_is_reported(filled):
    early = PIPELINE.replace("    wgmma_fence();", "    release(n);\n        wgmma_fence();")
    with pytest.raises(simulator.DataRace, match="read at line"):
        pipeline(filled, "wgmma_wait<0>();", 2, early)


def test_one_warpgroup_of_two_that_releases_too_early_is_reported():
    used = "if (threadIdx.x < 256) release(n); wgmma_wait<0>(); if (threadIdx.x >= 256) release(n);"
    with pytest.raises(simulator.DataRace, match=r"which thread \(128, 0, 0\) .* may still read at line"):
        pipeline(BY_TMA, used, 2)


@pytest.mark.parametrize("by", [128, 129, 200])
def test_a_warpgroup_does_not_write_before_its_own_wait(by):
    write = f"if (threadIdx.x == {by}) reinterpret_cast<volatile int *>(tiles[n % 2])[5] = 77;"
    with pytest.raises(simulator.DataRace, match=r"which thread \(128, 0, 0\) .* read at line"):
        pipeline(BY_TMA, f"{write} group_sync(1); {AT_ONCE}", 1)
    pipeline(BY_TMA, f"wgmma_wait<0>(); {write} fence_for_tma(); group_sync(1); release(n);", 1)


# -- factor A in registers, in PTX -------------------------------------------------------------------------------------

IN_REGISTERS = Case(8, ("f32", "f16", "f16"), in_registers=True)
OPERANDS = "{%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, %db, %add, 1, 1"
PRODUCT = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {OPERANDS}, 0;"
OTHER_SHAPE = f"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {OPERANDS};"
COMMIT, WAIT = "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"
TO_SUM, TO_FACTOR = "add.f32 %c1, %c1, 0f3F800000;", "add.u32 %a1, %a1, 1;"


def run_ptx(replaced: str, by: str) -> None:
    """The kernel of a product with one line of its PTX replaced, on zeros."""
    image, b_desc = placed(np.zeros((8, 16), np.float16), 128, False, False)
    text = kernel(IN_REGISTERS, image.nbytes)
    assert text.count(replaced) == 1
    device = simulator.Device(1 << 20)
    pointers = [put(device, np.zeros(size, np.uint8)) for size in (image.nbytes, 128 * 16, 128 * 16, 128 * 16)]
    params = [int(word).to_bytes(8, "little") for word in (*pointers, 0, b_desc)]
    params += [bytes(4), (1).to_bytes(4, "little")]
    device.launch(simulator.load(text.replace(replaced, by)).entries["wgmma"], (1,), (128,), params)


@pytest.mark.parametrize(
    ("replaced", "by", "what"),
    [
        (PRODUCT, f"{PRODUCT}\n{PRODUCT}", None),
        (PRODUCT, f"{PRODUCT}\n{COMMIT}\nmov.b32 %w, %a1;\n{PRODUCT}", None),  # A may be read meanwhile
        (WAIT, f"{WAIT}\n{TO_FACTOR}\n{TO_SUM}", None),
        (COMMIT, f"{COMMIT}\n{WAIT}\n{TO_FACTOR}\nwgmma.fence.sync.aligned;\n{PRODUCT}\n{COMMIT}", None),
        (COMMIT, f"{COMMIT}\n{TO_FACTOR}", "`add.u32` writes to factor A of a wgmma that may still be under way"),
        (COMMIT, f"{COMMIT}\n{TO_SUM}", "`add.f32` reads a sum of a wgmma that may still be under way"),
        (PRODUCT, f"{TO_FACTOR}\n{PRODUCT}", "its factor A was accessed since the latest wgmma.fence"),
        (PRODUCT, f"{TO_SUM}\n{PRODUCT}", "its sums were accessed since the latest wgmma.fence"),
        (COMMIT, f"{COMMIT}\n{OTHER_SHAPE}", "adds to sums of a wgmma of another shape that may be under way"),
    ],
)
def test_registers_of_factor_a(replaced, by, what):
    if what is None:
        run_ptx(replaced, by)
        return
    with pytest.raises(simulator.UnorderedRegisters, match=what):
        run_ptx(replaced, by)


@pytest.mark.parametrize(
    ("replaced", "by", "what"),
    [
        ("m64n8k16", "m64n12k16", "does not know the PTX instruction"),
        ("m64n8k16", "m64n8k8", "does not know the PTX instruction"),
        (".f32.f16.f16", ".f32.f16.bf16", "does not know the PTX instruction"),
        (".f32.f16.f16", ".s32.f16.f16", "does not know the PTX instruction"),
        ("%add, 1, 1, 0;", "%add, 2, 1, 0;", "does not know the PTX instruction"),
        ("%add, 1, 1, 0;", "%add, 1, 1;", "it takes 3 numbers after scale-d"),
        ("%add, 1, 1, 0;", "%add, 1, 1, 0, 0;", "it takes 3 numbers after scale-d"),
        ("{%c0, %c1, %c2, %c3}", "{%c0, %c1}", "2 registers for D, which has 4"),
        ("{%a0, %a1, %a2, %a3}", "{%a0, %a1}", "2 registers for A, which has 4"),
        ("mma_async.sync", "mma_async.sp.sync", "does not know the PTX instruction"),
        ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned;", "does not know the PTX instruction"),
        ("wgmma.fence.sync.aligned;", "wgmma.fence.sync;", "does not know the PTX instruction"),
    ],
)
def test_forms_that_wgmma_does_not_have_are_refused(replaced, by, what):
    with pytest.raises(simulator.UnsupportedInstruction, match=what):
        run_ptx(replaced, by)
