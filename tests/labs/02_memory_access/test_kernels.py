"""Lab 02's kernels on the active backend: right for any size, silent under all checks, counters as promised."""

import inspect
import math
import re

import numpy as np
import pytest

from kernels.memory_access import (
    SCANS,
    SUMS,
    TRANSPOSES,
    numba_kernels,
    patterns,
    prefix_sum,
    recordings,
    total,
    transposing,
)
from kernels.memory_access.patterns import LAYOUTS, STRIDED
from kernels.memory_access.scanning import TILE
from kernels.memory_access.sources import FLIGHTS, RADII, SOURCES
from kernels.memory_access.tables import ANY_SHAPE, drawn_shapes
from tests.support.random_inputs import generator
from warplab import cp, simulate

SHAPES = (
    *((1, 1), (1, 131), (131, 1), (2, 3), (32, 32), (31, 33), (64, 64), (65, 63), (97, 101), (128, 36), (100, 204)),
    *((3, 1111), (1111, 3), (256, 40), (257, 9), (1, 20001), (20001, 1), (5, 6007), (6007, 7)),
)
SIZES = (1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000, 5003)
GUARD = 32  # elements before and after each result; a multiple of 4, so that views stay aligned to 16 bytes


def fresh(*shape):
    return generator().standard_normal(shape, dtype=np.float32)


def whole_numbers(n):
    """float32 whose sums are exact in any order."""
    return generator().integers(-8, 9, n).astype(np.float32)


class Guarded:
    """A poisoned device array of a shape, `out`, between guard bands."""

    def __init__(self, *shape):
        self.count = int(np.prod(shape))
        self.whole = cp.asarray(np.full(self.count + 2 * GUARD, np.nan, np.float32))
        self.out = self.whole[GUARD : GUARD + self.count].reshape(shape)

    def result(self):
        host = cp.asnumpy(self.whole)
        guards = np.concatenate([host[:GUARD], host[GUARD + self.count :]])
        assert np.isnan(guards).all(), "the kernel wrote outside its array"
        return host[GUARD : GUARD + self.count].reshape(self.out.shape)


# -- transpose -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name in TRANSPOSES for shape in SHAPES if TRANSPOSES[name].takes(*shape)]
)
def test_transpose_is_numpys(name, shape):
    a, guarded = fresh(*shape), Guarded(*shape[::-1])
    TRANSPOSES[name].queue(cp.asarray(a), guarded.out)
    np.testing.assert_array_equal(guarded.result(), a.T)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_fastest_kernel_takes_the_shape(shape, aligned):
    name = transposing.fastest(*shape, aligned)
    assert TRANSPOSES[name].takes(*shape)
    assert aligned or TRANSPOSES[name].alignment == 4


def test_transpose_of_a_view_that_is_not_aligned():
    a = fresh(1 + 16 * 8)
    guarded = Guarded(8, 16)
    TRANSPOSES[transposing.fastest(16, 8, aligned=False)].queue(cp.asarray(a)[1:].reshape(16, 8), guarded.out)
    np.testing.assert_array_equal(guarded.result(), a[1:].reshape(16, 8).T)


def transposed(name, rows=128, columns=128):
    kernel = TRANSPOSES[name]
    out = np.full((columns, rows), np.nan, np.float32)
    grid, _, shared_bytes = kernel.plan(rows, columns)
    arguments = kernel.arguments(fresh(rows, columns), out)
    return simulate(kernel.function(), grid, kernel.block, arguments, shared_bytes=shared_bytes).counts


@pytest.mark.parametrize("language", ["numba", "cuda"])
def test_counters_of_the_transpose_ladder(language):
    naive, tile, padded = (transposed(f"{language}_{step}") for step in ("naive", "tile", "padded"))
    assert (naive.sectors_per_load_request, naive.sectors_per_store_request) == (4, 32)
    assert (tile.sectors_per_load_request, tile.sectors_per_store_request) == (4, 4)
    assert tile.shared_load_wavefronts == 32 * tile.shared_load_requests
    assert (padded.sectors_per_load_request, padded.sectors_per_store_request) == (4, 4)
    assert padded.shared_load_conflicts == padded.shared_store_conflicts == 0


@pytest.mark.parametrize(("name", "sectors"), [("cuda_swizzled", 4), ("cuda_large", 4), ("cuda_float4", 16)])
def test_counters_of_the_later_steps(name, sectors):
    counts = transposed(name)
    assert (counts.sectors_per_load_request, counts.sectors_per_store_request) == (sectors, sectors)
    assert counts.shared_load_conflicts == counts.shared_store_conflicts == 0
    assert counts.load_efficiency == counts.store_efficiency == 1


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("cuda_sectors", 1021, 131), ("cuda_few_columns", 5011, 23), ("cuda_few_rows", 61, 2011)],
)
def test_at_odd_sizes_hardly_a_sector_is_stored_in_part(name, rows, columns):
    whole = math.ceil(rows * columns / 8)
    assert transposed(name, rows, columns).global_store_sectors < 1.03 * whole
    assert transposed("cuda_large", rows, columns).global_store_sectors > 1.2 * whole


@pytest.mark.parametrize("shape", [(2**31 - 1, 1), (1, 2**31 - 1), (2**16 + 1, 2**20 + 1), (256, 2**29), (2**30, 999)])
def test_tiles_of_matrices_beyond_2_to_the_31_elements(shape):
    kernel = TRANSPOSES[transposing.fastest(*shape)]
    (grid,), sizes, shared_bytes = kernel.plan(*shape)
    assert grid < 2**31
    assert shared_bytes <= 64 * 1024
    if kernel.name == "cuda_sectors":
        down, across = math.ceil((shape[0] + 7) / transposing.HIGH), math.ceil(shape[1] / sizes[0])
        assert grid == down * across
        assert min(256, down) * across < 2**32  # what the kernel divides blocks by, in 32 bits


# -- sum -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("n", [0, *SIZES, 16384, 16385, 70001])
def test_sum_is_numpys(name, n):
    a = whole_numbers(n)
    result = cp.asnumpy(total(cp.asarray(a), name))
    assert result.shape == (1,)
    assert result[0] == a.sum(dtype=np.float64)


@pytest.mark.parametrize("name", SUMS)
def test_sum_of_real_numbers_is_near(name):
    a = generator().random(40003, dtype=np.float32)
    np.testing.assert_allclose(cp.asnumpy(total(cp.asarray(a), name))[0], a.sum(dtype=np.float64), rtol=1e-5)


def test_sum_refuses_what_does_not_fit():
    with pytest.raises(TypeError, match=r"a is a list in host memory; copy it with cp\.asarray\(a\)"):
        total([1.0])
    with pytest.raises(TypeError, match=r"a is a ndarray in host memory; copy it with cp\.asarray\(a\)"):
        total(fresh(8))
    with pytest.raises(ValueError, match=r"a has 2 dimensions; it must have one: a\.ravel\(\)"):
        total(cp.asarray(fresh(8, 8)))
    with pytest.raises(ValueError, match="a starts 4 bytes past a multiple of 16"):
        total(cp.asarray(fresh(9))[1:])
    np.testing.assert_allclose(cp.asnumpy(total(cp.asarray(np.ones(9, np.float32))[1:], "cuda_grid_stride")), 8)


def summed(name, n=2**14):
    """Counters of one launch; `passes` launches of the later steps are left out."""
    kernel = SUMS[name]
    blocks = kernel.blocks(n)
    arguments = kernel.arguments(fresh(n), np.zeros(1 if kernel.atomic else blocks, np.float32))
    return simulate(kernel.function(), (blocks,), (kernel.block,), arguments).counts, blocks


@pytest.mark.parametrize("language", ["numba", "cuda"])
def test_each_step_of_the_sum_does_less(language):
    interleaved, sequential, shuffle = (summed(f"{language}_{s}")[0] for s in ("interleaved", "sequential", "shuffle"))
    assert interleaved.warp_instructions > sequential.warp_instructions > shuffle.warp_instructions
    assert interleaved.barriers == sequential.barriers == 9 * shuffle.barriers
    assert interleaved.shared_load_wavefronts > sequential.shared_load_wavefronts > shuffle.shared_load_wavefronts
    for counts in (interleaved, sequential, shuffle):
        assert counts.sectors_per_load_request == 4
        assert counts.shared_load_conflicts == 0


@pytest.mark.parametrize("name", [name for name, kernel in SUMS.items() if kernel.atomic])
def test_one_atomic_a_block(name):
    counts, blocks = summed(name)
    assert counts.global_atomic_requests == counts.global_atomic_sectors == blocks
    assert counts.global_store_requests == 0


def test_float4_takes_a_quarter_of_the_requests():
    counts, _ = summed("cuda_float4", 2**15)
    assert counts.sectors_per_load_request == 16
    assert counts.global_load_requests == 2**15 // 128


# -- prefix sum ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("n", [0, *SIZES, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 1, 10 * TILE + 77, 65537])
def test_prefix_sum_is_numpys(name, n):
    a, guarded = whole_numbers(n), Guarded(n)
    assert prefix_sum(cp.asarray(a), guarded.out, name) is guarded.out
    np.testing.assert_array_equal(guarded.result(), np.cumsum(a, dtype=np.float64))


@pytest.mark.parametrize("name", SCANS)
def test_a_plan_is_launched_again_on_other_numbers(name):
    a, out = cp.asarray(np.zeros(3 * TILE + 5, np.float32)), cp.asarray(np.zeros(3 * TILE + 5, np.float32))
    launch = SCANS[name].plan(a, out)
    for _ in range(3):
        numbers = whole_numbers(a.size)
        a[:] = cp.asarray(numbers)
        launch()
        np.testing.assert_array_equal(cp.asnumpy(out), np.cumsum(numbers, dtype=np.float64))


def test_look_back_over_more_tiles_than_one_look():
    """33 tiles and more: a warp looks back more than once. With few threads at a time, tiles meet known prefixes."""
    n = 40 * TILE + 5
    a, kernel = whole_numbers(n), SCANS["cuda_look_back"]
    for lanes in (1 << 15, 256):
        out, statuses = np.full(n, np.nan, np.float32), np.zeros(41, np.uint64)
        arguments = a, out, np.uint64(n), statuses, np.zeros(1, np.uint32)
        simulate(kernel.function(), (41,), (256,), arguments, chunk_lanes=lanes)
        np.testing.assert_array_equal(out, np.cumsum(a, dtype=np.float64))
        assert (statuses >> np.uint64(32) == 2).all()


def test_prefix_sum_refuses_what_does_not_fit():
    a = cp.asarray(fresh(64))
    with pytest.raises(TypeError, match="a is a float in host memory"):
        prefix_sum(1.0, a)
    with pytest.raises(ValueError, match="overlap"):
        prefix_sum(a, a)
    with pytest.raises(ValueError, match=r"out has shape \(32,\); it must be \(64,\)"):
        prefix_sum(a, cp.asarray(fresh(32)))
    with pytest.raises(ValueError, match="out starts 4 bytes past a multiple of 16"):
        prefix_sum(a[:32], cp.asarray(fresh(33))[1:])


# -- patterns ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize("stride", [0, 1, 2, 7, 33])
@pytest.mark.parametrize("offset", [0, 1, 31])
def test_strided_copy(name, stride, offset):
    a, guarded = fresh(1000 * stride + offset + 1), Guarded(1000)
    patterns.copy_strided(cp.asarray(a), guarded.out, stride, offset, name)
    np.testing.assert_array_equal(guarded.result(), a[np.arange(1000) * stride + offset])


def test_a_strided_copy_beyond_the_end_is_refused():
    with pytest.raises(ValueError, match="a has 100 elements; stride 3, offset 2 and 50 need 150"):
        patterns.copy_strided(cp.asarray(fresh(100)), cp.asarray(fresh(50)), 3, 2)
    with pytest.raises(ValueError, match="stride -1 and offset 0 must be at least 0"):
        patterns.copy_strided(cp.asarray(fresh(100)), cp.asarray(fresh(50)), -1)


@pytest.mark.parametrize("name", STRIDED)
@pytest.mark.parametrize(
    ("stride", "offset", "sectors"), [(1, 0, 4), (2, 0, 8), (4, 0, 16), (8, 0, 32), (32, 0, 32), (1, 1, 5), (1, 8, 4)]
)
def test_sectors_of_strides_and_offsets(name, stride, offset, sectors):
    kernel, n = STRIDED[name], 1024
    arguments = fresh(n * stride + offset), fresh(n)
    numbers = (np.int64(stride), np.int64(offset))
    if name == "cuda":
        numbers = (np.uint64(n), np.int32(stride), np.int32(offset))
    counts = simulate(kernel.function(), n // 256, 256, (*arguments, *numbers)).counts
    assert counts.sectors_per_load_request == sectors
    assert counts.sectors_per_store_request == 4


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("n", [1, 33, 257, 1000])
def test_layouts(name, n):
    kernel = LAYOUTS[name]
    points, guarded = fresh(*((4, n) if kernel.soa else (n, 4))), Guarded(n)
    kernel.queue(cp.asarray(points), guarded.out)
    fields = points if kernel.soa else points.T
    np.testing.assert_allclose(guarded.result(), (fields[: kernel.fields] ** 2).sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("step", "requests", "sectors"),
    [("aos_field", 1, 16), ("soa_field", 1, 4), ("aos_norm", 4, 16), ("soa_norm", 4, 4), ("aos_norm_float4", 1, 16)],
)
@pytest.mark.parametrize("language", ["numba", "cuda"])
def test_sectors_of_layouts(language, step, requests, sectors):
    kernel = LAYOUTS.get(f"{language}_{step}")
    if kernel is None:
        assert (language, step) == ("numba", "aos_norm_float4")
        return
    n = 1024
    arguments = kernel.arguments(fresh(*((4, n) if kernel.soa else (n, 4))), fresh(n))
    counts = simulate(kernel.function(), n // 256, 256, arguments).counts
    assert counts.global_load_requests == requests * n // 32
    assert counts.sectors_per_load_request == sectors


@pytest.mark.parametrize(("width", "items"), FLIGHTS)
@pytest.mark.parametrize("n", [4, 1000, 20000])
def test_copies_in_flight(width, items, n):
    a, guarded = fresh(n), Guarded(n)
    patterns.copy_in_flight(cp.asarray(a), guarded.out, width, items, blocks=3)
    np.testing.assert_array_equal(guarded.result(), a)


def test_other_flights_are_refused():
    with pytest.raises(ValueError, match=r"no copy of 3 loads of 4 bytes; \(bytes, loads\) can be \(4, 1\)"):
        patterns.copy_in_flight(cp.asarray(fresh(8)), cp.asarray(fresh(8)), 4, 3, 1)
    with pytest.raises(ValueError, match="a has 9 elements; loads of 16 bytes need a multiple of 4"):
        patterns.copy_in_flight(cp.asarray(fresh(9)), cp.asarray(fresh(9)), 16, 1, 1)


def launched(file, entry, shape, *arguments, dtype=np.float32):
    """What a kernel whose last argument is a number per thread writes there. `shape`: blocks, threads of each."""
    blocks, threads = shape
    out = cp.empty(blocks * threads, dtype)
    SOURCES.function(file, entry)((blocks,), (threads,), (*arguments, out))
    return cp.asnumpy(out)


@pytest.mark.parametrize(("n", "loads"), [(4, 3), (4096, 1), (1000, 9), (8192, 5)])
def test_reading_again(n, loads):
    a = whole_numbers(n)
    result = launched("access.cu", "read_again", (2, 256), cp.asarray(a), np.uint32(n // 4), np.int32(loads))
    places = (np.arange(512)[:, None] + 512 * np.arange(loads)) % (n // 4)
    np.testing.assert_array_equal(result, a.reshape(-1, 4).sum(axis=1)[places].sum(axis=1))


def test_a_chase_follows_the_chain():
    order = generator().permutation(100).astype(np.uint32)
    following = np.empty(100, np.uint32)
    following[order] = np.roll(order, -1)
    found = launched("access.cu", "chase", (1, 1), cp.asarray(following), order[3], np.int32(42), dtype=np.uint32)
    assert found[0] == order[45]


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 8, 16, 31, 32, 33])
def test_banks(stride):
    out = cp.empty(128, np.float32)
    SOURCES.function("banks.cu", "read_banks")((2,), (64,), (out, np.int32(stride), np.int32(2)))
    result = cp.asnumpy(out)
    lane = np.arange(128) % 32
    np.testing.assert_array_equal(result, 2 * (8 * lane * stride + 28))


@pytest.mark.parametrize("stride", range(1, 34))
def test_wavefronts_of_a_stride_are_its_common_factor_with_the_banks(stride):
    arguments = fresh(32), np.int32(stride), np.int32(1)
    counts = simulate(SOURCES.function("banks.cu", "read_banks"), 1, 32, arguments).counts
    assert counts.shared_load_wavefronts == np.gcd(stride, 32) * counts.shared_load_requests
    assert counts.shared_load_requests == 8


# -- stencils ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["l1", "shared"])
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("n", [1, 31, 255, 256, 257, 1000])
def test_mean_of_neighbours(kind, radius, n):
    a, guarded = fresh(n + 2 * radius), Guarded(n)
    patterns.mean(cp.asarray(a), guarded.out, radius, kind)
    windows = np.lib.stride_tricks.sliding_window_view(a.astype(np.float64), 2 * radius + 1)
    np.testing.assert_allclose(guarded.result(), windows.mean(axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["l1", "shared"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 33), (33, 1), (8, 32), (9, 33), (45, 77)])
def test_heat(kind, shape):
    a, guarded = fresh(shape[0] + 2, shape[1] + 2), Guarded(*shape)
    patterns.heat(cp.asarray(a), guarded.out, kind)
    expected = np.float32(0.25) * ((a[:-2, 1:-1] + a[2:, 1:-1]) + (a[1:-1, :-2] + a[1:-1, 2:]))
    np.testing.assert_array_equal(guarded.result(), expected)


def test_stencils_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="radius is 3; compiled are 1, 2, 4, 8, 16, 32"):
        patterns.mean(cp.asarray(fresh(16)), cp.asarray(fresh(10)), 3)
    with pytest.raises(ValueError, match=r"a has shape \(16,\); it must be \(12,\)"):
        patterns.mean(cp.asarray(fresh(16)), cp.asarray(fresh(10)), 1)
    with pytest.raises(ValueError, match='kind is \'l2\'; it can be "l1" or "shared"'):
        patterns.heat(cp.asarray(fresh(6, 6)), cp.asarray(fresh(4, 4)), "l2")


# -- what was recorded ---------------------------------------------------------------------------------------------


QUOTED_SHAPES = {
    *(("16380 × 20004", "float4"), ("16380 × 20004", "sectors"), ("89478485 × 3", "few_columns")),
    ("1000003 × 250", "sectors"),
    *(("250 × 1000003", "few_rows"), ("31 × 8000003", "few_rows")),
}


def tables():
    values = recordings.values()
    return {what: values[f"{what}_table"]["kernels"] for what in ("transpose", "sum", "scan", "layout")}


def test_every_measurement_is_recorded_and_right():
    from kernels.memory_access.benchmark import BENCHMARK
    from kernels.memory_access.measurements import MEASUREMENTS

    values = recordings.values()
    assert set(values) == set(MEASUREMENTS)
    assert BENCHMARK.summary(values)["correct"] is True
    assert "prefix sum of 268,435,456 float32" in BENCHMARK.text(values)
    assert all(values[what]["cub"] for what in ("sum_table", "scan_table")), "the recording lacks CUB"


def test_the_recorded_kernels_reach_their_goals():
    best = {
        what: max((row for row in rows if row["language"] != "library"), key=lambda row: row["gbps"])
        for what, rows in tables().items()
    }
    assert best["transpose"]["ratio_to_copy"] >= 0.95
    assert best["sum"]["ratio_to_library"] >= 1.00
    assert best["scan"]["ratio_to_library"] >= 1.10
    assert best["scan"]["ratio_to_copy"] >= 0.88
    rows = recordings.values()["scan_lengths"]
    assert min(row["ratio_to_cub"] for row in rows) >= 1.09
    lengths = {row["n"]: row["ratio_to_copy"] for row in rows}
    assert np.exp(np.mean(np.log(list(lengths.values())))) >= 0.84  # the goal of 0.88 is missed below 2^23, see scan.cu
    assert min(ratio for n, ratio in lengths.items() if n >= 2**23) >= 0.87
    processes = recordings.values()["processes"]
    assert len(processes) == 3
    assert all(row["scan_mean"] >= 0.85 and row["empty_seconds"] < 5e-6 for row in processes)
    rows = recordings.values()["transpose_drawn"]
    assert {(row["rows"], row["columns"]) for row in rows} == set(drawn_shapes())
    drawn = [r["ratio_to_copy"] for r in rows if r["kernel"] == transposing.fastest(r["rows"], r["columns"])]
    assert len(drawn) == len(drawn_shapes())
    assert np.exp(np.mean(np.log(drawn))) >= 0.97
    assert min(drawn) >= 0.77  # the goal of 0.90 is missed by tall matrices beyond the L2 cache and by some very small


def test_the_headers_of_the_kernels_give_the_recorded_bandwidths():
    cuda = {file: SOURCES.text(f"{file}.cu") for file in ("transpose", "reduction", "scan", "access")}
    numba = inspect.getsource(numba_kernels)
    checked = 0
    for what, kernels in (("transpose", TRANSPOSES), ("sum", SUMS), ("scan", SCANS), ("layout", LAYOUTS)):
        rows = {row["kernel"]: row for row in tables()[what]}
        for name, kernel in kernels.items():
            if name in ANY_SHAPE:
                continue
            source = numba if kernel.language == "Numba" else cuda[kernel.file.removesuffix(".cu")]
            start = f"def {kernel.entry}(" if kernel.language == "Numba" else f" {kernel.entry.partition('<')[0]}("
            reached = re.findall("Reached: (.*)", source[: source.index(start)])[-1]
            assert reached.startswith(f"{rows[name]['gbps']:.0f} GB/s"), name
            for key, of in (("ratio_to_library", "CUB"), ("ratio_to_copy", "the copy")):
                if key in rows[name]:
                    assert f"{rows[name][key]:.2f} of {of}" in reached, name
            checked += 1
    assert checked == len(TRANSPOSES) - len(ANY_SHAPE) + len(SUMS) + len(SCANS) + len(LAYOUTS)
    for what, source in (("scan", cuda.pop("scan")), *(("sum", source) for source in (*cuda.values(), numba))):
        assert recordings.recorded(f"{what}_table").origin in source


def test_the_comments_give_the_recorded_sweeps():
    values = recordings.values()
    source = {file: SOURCES.text(f"{file}.cu") for file in ("access", "banks", "stencil", "transpose")}
    source = {file: re.sub(r"\n// ", " ", text) for file, text in source.items()}

    def row(key, field, value):
        rows = values[key] if isinstance(values[key], list) else values[key]["rows"]
        return next(r for r in rows if r[field] == value)

    speed = [f"{row('strides', 'stride', k)['gbps']:.0f}" for k in (1, 4, 8, 16, 32)]
    flights = values["bytes_in_flight"]["rows"]
    smallest, middle, largest = (
        max(r["gbps"] for r in flights if r["in_flight_bytes"] == n) for n in (512, 2**14, 2**17)
    )
    sets = [f"{row('working_sets', 'bytes', k * 2**20)['gbps']:.0f}" for k in (8, 40, 1024)]
    waits = [f"{row('latencies', 'bytes', n)['seconds'] * 1e9:.0f}" for n in (2**14, 2**20, 2**30)]
    banks = [f"{int(row('bank_conflicts', 'stride', k)['seconds'] * 1e6)} µs with" for k in (1, 2, 32, 33)]
    means = [row("stencils", "radius", k) for k in (1, 8, 32)]
    heat = values["stencils"]["heat"]
    of_copy = {
        (f"{r['rows']} × {r['columns']}", r["kernel"].removeprefix("cuda_")): f"{r['ratio_to_copy']:.2f}"
        for r in values["transpose_shapes"]
    }
    expected = {
        "access": (
            "{} GB/s with stride 1, {} with 4, {} with 8, {} with 16, {} with 32".format(*speed),
            f"{smallest:.0f} GB/s with 512 bytes in flight per multiprocessor, {middle:.0f} with 16 KiB",
            "{} GB/s for 8 MiB, {} for 40 MiB, {} for 1 GiB".format(*sets),
            "{} ns in the L1 cache, {} ns in the L2 cache (1 MiB), {} ns in memory (1 GiB)".format(*waits),
        ),
        "banks": ("{} stride 1, {} 2, {} 32, {} 33".format(*banks),),
        "stencil": (
            "{:.0f} GB/s with radius 1, {:.0f} with 8, {:.0f} with 32".format(*(r["l1"]["gbps"] for r in means)),
            "{:.2f}, {:.2f} and {:.2f} of the speed through".format(*(r["l1_of_shared"] for r in means)),
            f"{heat['l1']['gbps']:.0f} GB/s, {heat['l1_of_shared']:.2f} of the speed",
        ),
        "transpose": (
            *(f"{ratio} for {shape}" for (shape, kernel), ratio in of_copy.items() if (shape, kernel) in QUOTED_SHAPES),
            f"{of_copy['16381 × 20011', 'sectors']} of the copy for 16381 × 20011, two primes, where step 5 reaches "
            f"{of_copy['16381 × 20011', 'large']}",
            f"{of_copy['3 × 89478485', 'few_rows']} of the copy for 3 × 89478485",
        ),
    }
    for file, parts in expected.items():
        for part in parts:
            assert part in source[file], f"{file}.cu: {part}"
    assert largest <= middle
    offsets = values["offsets"]["rows"]
    assert f"With offset 1: {offsets[1]['gbps'] / offsets[0]['gbps']:.2f} of offset 0" in source["access"]


def test_figures_show_where_their_numbers_are_from():
    from kernels.memory_access import figures

    def recorded(key):
        return recordings.measure(key, lambda: pytest.fail("measured without a GPU"))

    strides, offsets = recorded("strides"), recorded("offsets")
    latency = recorded("latencies").value[-1]["seconds"]
    drawn = [
        *(figures.draw_kernels(recorded(f"{what}_table"), what) for what in ("transpose", "sum", "scan", "layout")),
        figures.draw_strides(strides, {row["stride"]: 4 for row in strides.value["rows"]}),
        figures.draw_offsets(offsets, {row["offset"]: 4 for row in offsets.value["rows"]}),
        figures.draw_stencils(recorded("stencils"), copy_gbps=3000),
        figures.draw_working_sets(recorded("working_sets")),
        figures.draw_bytes_in_flight(recorded("bytes_in_flight"), latency),
        figures.draw_latencies(recorded("latencies")),
        figures.draw_bank_conflicts(recorded("bank_conflicts")),
        figures.draw_unified_memory(recorded("unified_memory")),
    ]
    for figure in drawn:
        assert strides.label.rpartition(",")[0] in figure.axes[0].get_title(loc="left")
