"""Steps 5 and 6 of lab 05, for Hopper: what they compile to, where they look for their operands, what they compute, and
which mistakes in them the simulator finds."""

import re

import numpy as np
import pytest

from kernels.tensor_core import STEPS, multiply, tiles
from kernels.tensor_core.changed import simulate_changed
from kernels.tensor_core.ladder import SOURCES
from kernels.tensor_core.tiles import Persistent
from tests.support.tensor_products import operands, within
from warpcourse.bench import hopper
from warplab import cp, profile, simulator
from warplab.compile import nvrtc
from warplab.hardware import backend
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

HOPPER = [name for name, step in STEPS.items() if step.hopper]


def options(name, result="half"):
    return (*hopper.include(), f"-DRESULT={result}", *(tiles.persistent().options if "persistent" in name else ()))


@pytest.mark.parametrize("result", ["half", "float"])
@pytest.mark.parametrize("name", HOPPER)
def test_machine_code_for_hopper_is_as_it_must_be(name, result):
    step = STEPS[name]
    log, *_ = nvrtc.assemble_cuda(step.source, step.file, "90a", options(name, result))
    assert "0 bytes spill stores" in log
    # ptxas warns (C75xx) when it must wait for each wgmma, or leaves setmaxnreg out.
    assert not re.search(r"warning|C75\d\d|Potential Performance", log), log
    registers = int(re.search(r"Used (\d+) registers", log).group(1))
    assert registers * step.threads <= 65536
    code = hopper.cubin(SOURCES.folder / step.file, options(name, result)[1:])
    assert code[:4] == b"\x7fELF"
    assert f"tensor_core_{name}".encode() in code


def test_the_instructions_of_hopper_are_there():
    ptx = {name: nvrtc.compile_cuda(STEPS[name].source, options=("-arch=sm_90a", *options(name))) for name in HOPPER}
    for text in ptx.values():
        assert text.count("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16") == 4  # 64 of k
        assert "cp.async.bulk.tensor.2d.shared::cluster.global" in text
    assert "setmaxnreg" not in ptx["wgmma_tma"]
    last = ptx["wgmma_persistent"]
    for instruction in ("setmaxnreg.inc", "setmaxnreg.dec", "multicast::cluster", "cp.async.bulk.tensor.2d.global"):
        assert instruction in last
    alone = Persistent(4, 1, 8).options
    source = STEPS["wgmma_persistent"].source
    assert "multicast" not in nvrtc.compile_cuda(source, options=("-arch=sm_90a", *hopper.include(), *alone))


def test_the_kernel_of_the_peak_compiles():
    log, *_ = nvrtc.assemble_cuda((SOURCES.folder / "peak.cu").read_text(), "peak.cu", "90a", hopper.include())
    assert log.count("0 bytes spill stores") == 2
    assert not re.search(r"warning|C75\d\d", log), log


def on_simulator(body, result):
    """Runs statements of CUDA C++ in one thread; `out` is the array that they write."""
    kind = {"u8": "unsigned long long", "i4": "int"}[result.dtype.str[1:]]
    code = f'#include <warplab/shared_layout.cuh>\nextern "C" __global__ void ask({kind} *out) {{ {body} }}'
    simulate(CudaSource(code, "ask", hopper.include()), 1, 1, (result,))
    return result


def box_places(rows):
    """Byte at which TMA puts element (row, column) of a box of 64 float16 columns, swizzled by 128 bytes."""
    row, column = np.indices((rows, 64))
    return 128 * row + 16 * ((column // 8) ^ (row % 8)) + column % 8 * 2


def described(descriptor):
    """Start, leading and stride offset in bytes, and swizzle, of a matrix descriptor (PTX ISA, "Matrix-Descriptor")."""
    bits = int(descriptor)
    field = [(bits >> low & 0x3FFF) << 4 for low in (0, 16, 32)]
    assert bits >> 49 & 7 == 0, "base offset"
    return (*field, bits >> 62)


def swizzled(address):
    """Bits 4 to 6 of an address are exchanged by bits 7 to 9."""
    return address ^ (address >> 3 & 0x70)


def test_descriptors_of_a_find_what_tma_has_put():
    """K-major: eight rows of 128 bytes, then the stride offset; chunks of eight elements of k side by side."""
    places = box_places(128)
    asked = [(row, depth) for row in (0, 64) for depth in (0, 16, 32, 48)]
    body = "".join(f"out[{i}] = k_major(4096, {row}, {depth});" for i, (row, depth) in enumerate(asked))
    for (row, depth), found in zip(asked, on_simulator(body, np.zeros(len(asked), np.uint64)), strict=True):
        start, _, stride, swizzle = described(found)
        assert swizzle == 1
        r, k = np.indices((64, 16))
        address = swizzled(start + r % 8 * 128 + r // 8 * stride + 2 * k)
        np.testing.assert_array_equal(address - 4096, places[row : row + 64, depth : depth + 16])


def test_descriptors_of_b_find_what_tma_has_put():
    """N-major: 64 columns side by side, eight of k 128 bytes apart; the leading offset leads to the next 64 columns,
    the stride offset to the next eight of k."""
    boxes = np.concatenate([box_places(64) + box * 64 * 128 for box in range(4)], axis=1)
    body = "".join(f"out[{i}] = mn_major(16384, {16 * i}, 64);" for i in range(4))
    for i, found in enumerate(on_simulator(body, np.zeros(4, np.uint64))):
        start, leading, stride, swizzle = described(found)
        assert swizzle == 1
        k, n = np.indices((16, 256))
        address = swizzled(start + k % 8 * 128 + k // 8 * stride + n // 64 * leading + n % 64 * 2)
        np.testing.assert_array_equal(address - 16384, boxes[16 * i : 16 * i + 16])


def test_a_moved_operand_is_the_one_described_there():
    """Up to the last address of a block's shared memory."""
    last = 227 * 1024 - 16
    for start in (0, 1024, last):
        body = f"out[0] = moved(k_major(0, 0, 0), {start}); out[1] = k_major({start}, 0, 0);"
        body += f"out[2] = moved(mn_major({start}, 0, 64), {last - start}); out[3] = mn_major({last}, 0, 64);"
        moved_a, a, moved_b, b = on_simulator(body, np.zeros(4, np.uint64))
        assert (moved_a, moved_b) == (a, b)
        assert described(a)[0] == start
        assert described(b)[0] == last


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_results_go_where_tma_takes_them_from(dtype):
    """A box of C as the lanes of a warpgroup write it, read back as TMA would."""
    kind, columns = {np.float16: ("half", 64), np.float32: ("float", 32)}[dtype]
    code = f"""
#include <warplab/shared_layout.cuh>
extern "C" __global__ void write(unsigned *out) {{
    __shared__ alignas(1024) unsigned box[2048];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int j = 0; j < {columns} / 8; j++) {{
        for (int h = 0; h < 2; h++) {{
            const int row = warp * 16 + h * 8 + lane / 4, column = j * 8 + lane % 4 * 2;
            const float value = row * {columns} + column - 2048;
            keep2(shared_address(box), row, column, value, value + 1, {kind}());
        }}
    }}
    __syncthreads();
    for (int i = threadIdx.x; i < 2048; i += 128) {{
        out[i] = box[i];
    }}
}}"""
    out = np.zeros(2048, np.uint32)
    counts = simulate(CudaSource(code, "write", hopper.include()), 1, 128, (out,)).counts
    row, column = np.indices((64, columns))
    item = np.dtype(dtype).itemsize
    per_chunk = 16 // item
    places = 128 * row + 16 * ((column // per_chunk) ^ (row % 8)) + column % per_chunk * item
    np.testing.assert_array_equal(out.view(dtype)[places // item], row * columns + column - 2048)
    # Of float32, two rows' pairs of chunks meet in the same banks.
    assert counts.shared_store_conflicts == {np.float16: 0, np.float32: 64}[dtype]


def test_tiles_are_visited_once_each_in_groups():
    for height, width, group in ((7, 3, 4), (1, 5, 8), (32, 32, 8), (9, 1, 2)):
        total = height * width
        body = (
            f"for (int i = 0; i < {total}; i++) "
            f"{{ int row, column; place_of(i, {height}, {width}, {group}, row, column); "
            "out[2 * i] = row; out[2 * i + 1] = column; }"
        )
        visited = on_simulator(body, np.zeros(2 * total, np.int32)).reshape(total, 2)
        assert len({tuple(x) for x in visited.tolist()}) == total
        assert visited.min() == 0
        assert visited.max(axis=0).tolist() == [height - 1, width - 1]
        rows = min(group, height)
        assert visited[:rows].tolist() == [[i, 0] for i in range(rows)], "down a group first"


@pytest.mark.parametrize(
    ("name", "m", "n", "k", "dtype"),
    [
        ("wgmma_tma", 72, 136, 136, np.float32),
        ("wgmma_tma", 1, 8, 8, np.float16),
        ("wgmma_tma", 257, 264, 328, np.float16),  # five steps, so that four stages come round
        ("wgmma_persistent", 130, 72, 72, np.float16),
        ("wgmma_persistent", 1, 8, 328, np.float32),
    ],
)
def test_products_in_the_simulator(name, m, n, k, dtype):
    """The kernels' own PTX, with TMA and wgmma as the simulator runs them."""
    a, b = operands(m, n, k)
    with profile() as p:
        c = multiply(cp.asarray(a), cp.asarray(b), step=name, dtype=dtype)
    assert within(a, b, cp.asnumpy(c)).all()
    if backend.name() == "gpu":
        return  # there `profile` does not see launches by the driver
    (launch,) = p
    step = STEPS[name]
    high = tiles.persistent().cluster * step.tile[0] if "persistent" in name else step.tile[0]
    blocks = -(-m // high) * high // step.tile[0] * -(-n // step.tile[1])
    products = blocks * 2 * -(-k // 64) * 4  # of two warpgroups, 16 of k each
    assert launch.tensor_operations == {"m64n256k16.f32.f16": products}
    assert launch.counts.tensor_operations == 4 * products  # machine instructions, one per warp
    if dtype == np.float16:
        assert launch.counts.shared_store_conflicts == 0
    assert launch.counts.global_load_requests == 0, "TMA loads"
    assert (launch.counts.global_store_requests == 0) == ("persistent" in name), "and stores, in step 6"


@pytest.mark.parametrize(("cluster", "group"), [(1, 1), (2, 2), (4, 8)])
def test_blocks_that_stay_take_every_tile(cluster, group):
    """Clusters, order and number of stages of step 6 as they may be; 300 × 520 are 3 × 3 tiles."""
    if backend.name() == "gpu":
        pytest.skip("test_kernels_on_gpu.py does it there")
    a, b = operands(300, 520, 136)
    c = cp.asarray(np.full((300, 520), np.nan, np.float16))
    STEPS["wgmma_persistent"].launch(cp.asarray(a), cp.asarray(b), c, Persistent(2, cluster, group))
    assert within(a, b, cp.asnumpy(c)).all()


ON_SIMULATOR = pytest.mark.skipif(backend.name() == "gpu", reason="a wrong kernel may hang a GPU")


def product_changed(name, old, new):
    """3 × 2 tiles of C, seven steps of k, with two stages."""
    a, b = operands(200, 280, 392)
    assert within(a, b, simulate_changed(name, old, new, a, b)).all()


@ON_SIMULATOR
@pytest.mark.parametrize(
    ("name", "old", "new", "error", "what"),
    [
        (
            "wgmma_tma",
            "barrier_wait(shared_address(&full[stage]), step / STAGES % 2);",
            "",
            simulator.UninitializedRead,
            "is still being copied",
        ),
        (
            "wgmma_tma",
            "barrier_expect(barrier, STAGE_BYTES)",
            "barrier_expect(barrier, STAGE_BYTES + 16)",
            simulator.DivergentBarrier,
            "wait for ever at an mbarrier: 16 bytes of its phase never come",
        ),
        (
            "wgmma_tma",
            "barrier_expect(barrier, STAGE_BYTES)",
            "barrier_expect(barrier, STAGE_BYTES - 8192)",
            simulator.DataRace,
            "nothing orders the two",
        ),
        ("wgmma_tma", "wgmma_fence();", "", simulator.UnorderedRegisters, "before any wgmma.fence"),
        (
            "wgmma_tma",
            "__syncthreads();  // both warpgroups have read this stage",
            "",
            simulator.DataRace,
            r"thread \(0, 0, 0\) of block .* writes .* which thread \(128, 0, 0\) .* read at line",
        ),
        (
            "wgmma_tma",
            "k_major(a_box, group * 64, depth)",
            "(k_major(a_box, group * 64, depth) ^ 3ull << 62)",
            simulator.WrongDescriptor,
            "the descriptor of A says a swizzle of 64 bytes, but the tensor copy .* had a swizzle of 128 bytes",
        ),
        (
            "wgmma_persistent",
            "wgmma_wait<1>();  // for the stage before",
            "",
            simulator.SimulatorError,
            "could still read it|nothing orders the two|is still being copied",
        ),
        (
            "wgmma_persistent",
            "barrier_arrive(empty_at + 8 * done, lane);",
            "barrier_arrive(empty_at + 8 * done, rank);",
            simulator.DataRace,
            r"of block \(1, 0, 0\) writes byte .* of block \(0, 0, 0\), which thread .* read at line",
        ),
        ("wgmma_persistent", "fence_for_tma();", "", simulator.MissingProxyFence, "without a fence.proxy.async"),
        (
            "wgmma_persistent",
            "stores_have_read<1>();",
            "",
            simulator.SimulatorError,
            "shared memory was written while a bulk copy still had to read it",
        ),
    ],
)
def test_mistakes_are_found(name, old, new, error, what):
    with pytest.raises(error, match=what):
        product_changed(name, old, new)


@ON_SIMULATOR
@pytest.mark.parametrize("name", HOPPER)
def test_unchanged_the_steps_are_silent(name):
    product_changed(name, "for (int depth = 0;", "for (int depth = 0 ;")


def test_what_is_changed_must_be_there_once():
    a = np.zeros((8, 8), np.float16)
    if backend.name() == "gpu":
        with pytest.raises(RuntimeError, match="may hang a GPU"):
            simulate_changed("wgmma_tma", "wgmma_fence();", "", a, a)
        return
    for old, times in (("warp_fence();", 0), ("__forceinline__", 2)):
        with pytest.raises(ValueError, match=rf"5_wgmma_tma.cu has {times} times"):
            simulate_changed("wgmma_tma", old, "", a, a)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"dtype": "float64"}, "dtype must be"),
        ({"address": 8}, "address must be a multiple of 16"),
        ({"columns": 12}, "rows must be a multiple of 16 bytes"),
        ({"rows": 0}, "rows and columns must be 1"),
        ({"box_rows": 257}, "box_rows must be 1 to 256"),
        ({"box_columns": 48}, "rows of a box must be 128, 64, 32 bytes"),
    ],
)
def test_boxes_that_tma_cannot_copy_are_refused(changed, rule):
    right = {"address": 4096, "dtype": "float16", "rows": 5, "columns": 24, "box_rows": 128, "box_columns": 64}
    assert hopper.Boxes(**right).row_bytes == 48
    with pytest.raises(ValueError, match=rule):
        hopper.Boxes(**right | changed)
