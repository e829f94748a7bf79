"""Lab 03's kernels on the active backend against NumPy, with every check on, and what the simulator counts of them."""

import itertools

import numpy as np
import pytest

from kernels.warp_divergence import KERNELS, divergence, histograms, order, selection, tasks
from kernels.warp_divergence.histograms import BINS
from kernels.warp_divergence.kernel_table import BLOCK, STEPS, WAYS, blocks, kernel
from tests.support.random_inputs import generator
from warplab import cp, profile, simulator
from warplab.launch.simulate import simulate

SIZES = (1, 2, 3, 31, 32, 33, 127, 128, 129, 1000, 5003)
GUARD = 32  # elements before and after an output
HISTOGRAMS = [name for name in KERNELS if "histogram" in name]


def guarded(n, dtype, poison):
    """(whole array on the device, the view of n elements inside it, function that checks the bands)."""
    whole = cp.asarray(np.full(n + 2 * GUARD, poison, dtype))

    def check():
        found = cp.asnumpy(whole)
        bands = np.concatenate([found[:GUARD], found[GUARD + n :]])
        np.testing.assert_array_equal(bands, np.full(2 * GUARD, poison, dtype), "the kernel wrote outside its array")

    return whole[GUARD : GUARD + n], check


def launch(name, grid, x, *arrays, block=BLOCK):
    """Launch a kernel of whole numbers by length, which Numba's arrays know themselves."""
    chosen = kernel(name)
    chosen.launch(grid, block, (x, *arrays) if chosen.language == "Numba" else (x, *arrays, np.int32(x.size)))


# -- order of the sides ----------------------------------------------------------------------------------------------


def ordered(name, scheduling):
    """(sequence, what B read, the launch's profile) of a kernel of order.cu on the simulator."""
    when, read = np.full((5, 32), -1, np.int64), np.full(order.READERS, -1, np.int32)
    arguments = order.arguments(name, when, read)
    options = {"scheduling": scheduling, "path_limit": 30_000, "volatile_orders": name == "cuda_handshake"}
    found = simulate(kernel(name).function(), 1, 32, arguments, **options)
    since = order.since_the_first(when)
    for letter, row in zip(order.LETTERS, since, strict=True):
        lanes = {"A": 4, "B": 4, "X": 28, "Y": 28, "Z": 32}[letter]
        assert (row >= 0).sum() == lanes
        assert np.unique(row[row >= 0]).size == 1, "all lanes of a side come together"
    return order.sequence(since), read.tolist(), found


@pytest.mark.parametrize("scheduling", ["pascal", "volta"])
def test_the_sides_of_a_branch_run_one_after_the_other(scheduling):
    sequence, _, found = ordered("cuda_branch", scheduling)
    assert sequence == "ABXYZ"
    assert found.counts.divergent_branches == 1
    # Four lanes for two letters, 28 for two, 32 for one: (4 + 4 + 28 + 28 + 32) / (5 x 32).
    assert found.counts.warp_efficiency == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize("name", ["cuda_ordered", "cuda_in_turn"])
def test_syncwarp_lets_b_read_what_x_wrote_on_volta_only(name):
    sequence, read, _ = ordered(name, "volta")
    assert sequence == "AXBYZ"
    assert read == [order.VALUE] * order.READERS
    with pytest.raises(simulator.DivergentWarp, match="one program counter per warp"):
        ordered(name, "pascal")


def test_a_handshake_ends_on_volta_and_never_on_pascal():
    sequence, read, _ = ordered("cuda_handshake", "volta")
    assert sequence.index("X") < sequence.index("B")
    assert read == [order.VALUE] * order.READERS
    with pytest.raises(simulator.InstructionLimit, match="while \\(!ready\\)"):
        ordered("cuda_handshake", "pascal")


@pytest.mark.parametrize("scheduling", ["pascal", "volta"])
def test_without_syncwarp_there_is_a_race(scheduling):
    with pytest.raises(simulator.DataRace, match="result"):
        ordered("cuda_unordered", scheduling)


@pytest.mark.parametrize(
    ("name", "error"), [("numba_ordered", "DivergentWarp"), ("numba_handshake", "InstructionLimit")]
)
def test_numba_synchronises_a_warp_likewise(name, error):
    read = np.full(order.READERS, -1, np.int32)
    simulate(kernel(name).function(), 1, 32, (read, np.int32(7)))
    assert read.tolist() == [7] * order.READERS
    with pytest.raises(getattr(simulator, error)):
        simulate(kernel(name).function(), 1, 32, (read, np.int32(7)), scheduling="pascal", path_limit=3_000)


def test_order_runs_on_the_active_backend():
    when, read = order.run("cuda_ordered", value=5)
    assert when.shape == (5, 32)
    assert when.min() == -1
    assert read.tolist() == [5] * order.READERS


# -- branches --------------------------------------------------------------------------------------------------------


def after_paths(x, ways, by, steps):
    y, added = x.copy(), np.float32(1) + ((np.arange(x.size) >> divergence.SHIFTS[by]) % ways).astype(np.float32)
    for _ in range(steps):
        y = np.float32(0.5) * y + added
    return y


@pytest.mark.parametrize("by", ["lane", "warp"])
@pytest.mark.parametrize("ways", WAYS)
def test_paths(ways, by):
    n = 1024
    x = generator().random(n, dtype=np.float32)
    out, check = guarded(n, np.float32, np.nan)
    with profile() as p:
        divergence.paths(cp.asarray(x), out, ways, by, steps=200)
    np.testing.assert_array_equal(cp.asnumpy(out), after_paths(x, ways, by, 200))
    check()
    if by == "warp":
        assert p.counts.divergent_branches == 0
        assert p.counts.warp_efficiency == 1
    else:
        assert 0.97 / ways < p.counts.warp_efficiency < 1.15 / ways
        assert p.counts.divergent_branches == blocks(n, 32) * (ways - 1)


@pytest.mark.parametrize("n", SIZES)
def test_paths_of_any_length(n):
    x = generator().random(n, dtype=np.float32)
    out, check = guarded(n, np.float32, np.nan)
    divergence.paths(cp.asarray(x), out, 4, "lane", steps=5)
    np.testing.assert_array_equal(cp.asnumpy(out), after_paths(x, 4, "lane", 5))
    check()


def test_two_paths_in_numba():
    x = generator().random(1000, dtype=np.float32)
    for by, shift in divergence.SHIFTS.items():
        out = cp.asarray(np.full(1000, np.nan, np.float32))
        kernel("numba_two_paths").launch(blocks(1000), BLOCK, (cp.asarray(x), out, np.int32(40), np.int32(shift)))
        np.testing.assert_array_equal(cp.asnumpy(out), after_paths(x, 2, by, 40))


@pytest.mark.parametrize("steps", STEPS)
def test_condition(steps):
    x = generator().standard_normal(1000, dtype=np.float32)
    out, check = guarded(1000, np.float32, np.nan)
    with profile() as p:
        divergence.condition(cp.asarray(x), out, steps)
    expected = x.copy()
    for k in range(1, steps + 1):
        expected = np.where(x > 0, np.float32(0.5) * expected + np.float32(k), expected)
    np.testing.assert_array_equal(cp.asnumpy(out), expected)
    check()
    # Up to seven steps the compiler makes predicates of the condition, see machine_code.json.
    assert p.counts.branches == (0 if steps < 8 else blocks(1000, 32))


# -- tasks -----------------------------------------------------------------------------------------------------------


def collatz_steps(first, n):
    steps = np.zeros(n, np.int32)
    value = np.arange(first, first + n, dtype=np.uint64)
    while (value != 1).any():
        busy = value != 1
        value = np.where(busy, np.where(value % 2 == 1, 3 * value + 1, value // 2), value)
        steps += busy
    return steps


@pytest.mark.parametrize("name", ["cuda_uneven", "numba_uneven"])
def test_uneven_tasks_and_their_sorting(name):
    n = 1024
    trips = generator().integers(0, 200, n, dtype=np.int32)
    expected = np.array([2 - 2.0 ** (1 - t) for t in trips], np.float32)
    efficiency = []
    for ordering in (np.arange(n), np.argsort(trips)):
        out, check = guarded(n, np.float32, np.nan)
        with profile() as p:
            launch(name, blocks(n), cp.asarray(trips), cp.asarray(ordering.astype(np.int32)), out)
        np.testing.assert_array_equal(cp.asnumpy(out), expected)
        check()
        efficiency.append(p.counts.warp_efficiency)
    mean_of_maximum = trips.mean() / np.mean([trips[k : k + 32].max() for k in range(0, n, 32)])
    assert efficiency[0] == pytest.approx(mean_of_maximum, abs=0.06)
    assert efficiency[1] > 0.9


@pytest.mark.parametrize("name", ["cuda_collatz", "numba_collatz"])
def test_collatz_and_its_sorting(name):
    first, n = 1 + int(generator().integers(0, 2**20)), 1024
    expected = collatz_steps(first, n)
    efficiency = []
    for ordering in (np.arange(n), np.argsort(expected)):
        out, check = guarded(n, np.int32, -1)
        with profile() as p:
            tasks.collatz(first, cp.asarray(ordering.astype(np.int32)), out, name)
        np.testing.assert_array_equal(cp.asnumpy(out), expected)
        check()
        efficiency.append(p.counts.warp_efficiency)
    assert efficiency[0] < 0.75 < 0.9 < efficiency[1]


@pytest.mark.parametrize("chunk", [32, 100])
@pytest.mark.parametrize("n", [1, 31, 33, 2000])
def test_collatz_from_a_queue(n, chunk):
    out, check = guarded(n, np.int32, -1)
    with profile() as p:
        tasks.collatz_queue(27, out, chunk=chunk)
    np.testing.assert_array_equal(cp.asnumpy(out), collatz_steps(27, n))
    check()
    warps = tasks.queue_blocks("cuda_collatz_queue") * BLOCK // 32
    # An atomic a chunk; each warp asks once more in the end, or as often as its last lane takes longer.
    assert n / chunk <= p.counts.global_atomic_requests <= n / chunk + 5 * warps


def test_a_queue_keeps_the_lanes_busy():
    first, n = np.uint32(2**20), 8_000
    out = np.zeros(n, np.int32)
    queue = np.zeros(1, np.uint32), np.uint32(32)
    counts = simulate(kernel("cuda_collatz_queue").function(), 1, 128, (first, *queue, out, np.uint32(n))).counts
    assert counts.warp_efficiency > 0.95


def escapes(pixels, limit, view):
    left, bottom, step = view.scalars(pixels)
    c_re = np.broadcast_to(left + step * np.arange(pixels, dtype=np.float32), (pixels, pixels))
    c_im = np.broadcast_to((bottom + step * np.arange(pixels, dtype=np.float32))[:, None], (pixels, pixels))
    re, im, passes = (np.zeros((pixels, pixels), t) for t in (np.float32, np.float32, np.int32))
    for _ in range(limit):
        inside = re * re + im * im < 4
        following = re * re - im * im + c_re
        im = np.where(inside, np.float32(2) * re * im + c_im, im)
        re = np.where(inside, following, re)
        passes += inside
    return passes


@pytest.mark.parametrize("view", [tasks.WHOLE, tasks.SPIRAL])
@pytest.mark.parametrize("pixels", [1, 31, 50])
def test_mandelbrot_is_numpys_however_the_pixels_are_dealt_out(pixels, view):
    expected = escapes(pixels, 60, view)
    for draw in (
        lambda out: tasks.mandelbrot(out, 60, view, block=tasks.ROW_SHAPE),
        lambda out: tasks.mandelbrot(out, 60, view, block=tasks.TILE_SHAPE),
        lambda out: tasks.mandelbrot_queue(out, 60, view),
    ):
        out, check = guarded(pixels * pixels, np.int32, -1)
        draw(out.reshape(pixels, pixels))
        np.testing.assert_array_equal(cp.asnumpy(out).reshape(pixels, pixels), expected)
        check()


def test_tiles_are_more_alike_than_rows():
    efficiency = []
    for block in (tasks.ROW_SHAPE, tasks.TILE_SHAPE):
        with profile() as p:
            tasks.mandelbrot(cp.zeros((64, 64), np.int32), 200, tasks.WHOLE, block=block)
        efficiency.append(p.counts.warp_efficiency)
    assert efficiency[1] > efficiency[0] + 0.1


@pytest.mark.parametrize("name", ["cuda_row_sums_thread", "cuda_row_sums_warp", "numba_row_sums_warp"])
@pytest.mark.parametrize("rows", [1, 7, 33, 300])
def test_row_sums(name, rows):
    rng = generator()
    lengths = rng.choice([0, 1, 31, 32, 33, 100], rows)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    value = rng.integers(-1000, 1000, max(1, start[-1]), dtype=np.int32)
    out, check = guarded(rows, np.int32, -(2**31))
    tasks.row_sums(cp.asarray(start), cp.asarray(value), out, name)
    assert cp.asnumpy(out).tolist() == [value[a:b].sum() for a, b in itertools.pairwise(start)]
    check()


# -- shuffles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["cuda", "numba"])
@pytest.mark.parametrize("n", SIZES)
def test_sums_and_scans_of_warps(language, n):
    x = generator().integers(-(2**31), 2**31, n, dtype=np.int64).astype(np.int32)
    parts = [x[k : k + 32] for k in range(0, n, 32)]
    sums, check_sums = guarded(len(parts), np.int32, -7)
    scans, check_scans = guarded(n, np.int32, -7)
    launch(f"{language}_warp_sums", blocks(n), cp.asarray(x), sums)
    with profile() as p:
        launch(f"{language}_warp_scans", blocks(n, 96), cp.asarray(x), scans, block=96)
    np.testing.assert_array_equal(cp.asnumpy(sums), [part.sum(dtype=np.int32) for part in parts])
    np.testing.assert_array_equal(cp.asnumpy(scans), np.concatenate([part.cumsum(dtype=np.int32) for part in parts]))
    check_sums()
    check_scans()
    assert p.counts.barriers == p.counts.shared_load_requests == 0


# -- histograms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HISTOGRAMS)
@pytest.mark.parametrize("n", [*SIZES, 40_000])
def test_histogram_is_numpys(name, n):
    x = generator().integers(0, 256, n + 5, dtype=np.uint8)
    bins, check = guarded(BINS, np.uint32, 99)
    for offset in (0, 5):  # the second does not begin at a multiple of 16
        histograms.plan(cp.asarray(x)[offset : offset + n], bins, name)()
        np.testing.assert_array_equal(cp.asnumpy(bins), np.bincount(x[offset : offset + n], minlength=BINS))
    check()


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histogram_of_one_value_and_of_none(name):
    bins = cp.asarray(np.full(BINS, 99, np.uint32))
    histograms.plan(cp.asarray(np.full(1000, 200, np.uint8)), bins, name)()
    assert cp.asnumpy(bins)[200] == 1000 == cp.asnumpy(bins).sum()
    histograms.plan(cp.zeros(0, np.uint8), bins, name)()
    assert not cp.asnumpy(bins).any()


def counts_of(name, x):
    with profile() as p:
        histograms.plan(cp.asarray(x), cp.zeros(BINS, np.uint32), name)()
    return p.counts


def test_atomics_of_the_histograms():
    n = 8192
    random, same = generator().integers(0, 256, n, dtype=np.uint8), np.zeros(n, np.uint8)
    for x in (random, same):
        assert counts_of("cuda_histogram_global", x).global_atomic_requests == n // 32
        columns = counts_of("cuda_histogram_columns", x)
        assert columns.shared_atomic_requests == columns.shared_atomic_wavefronts, "each lane has its own bank"
        assert columns.shared_atomic_conflicts == 0
    # Lanes with one address take turns: 32 per warp, or one where they are added up first.
    assert counts_of("cuda_histogram_global", same).global_atomic_sectors == n
    for name in ("cuda_histogram_matched", "cuda_histogram_partition", "numba_histogram_matched"):
        assert counts_of(name, same).global_atomic_sectors == n // 32
    # A block adds its 256 counts once, by eight warps.
    shared = counts_of("cuda_histogram_shared", random)
    assert shared.global_atomic_requests % 8 == 0
    assert shared.global_atomic_requests < n // 32
    assert counts_of("cuda_histogram_vector", random).shared_atomic_wavefronts > 2 * n // 32


# -- selections ------------------------------------------------------------------------------------------------------


def selected(name, x, threshold):
    out, check = guarded(x.size, x.dtype, -123)
    count = cp.asarray(np.array([77], np.uint64))
    with profile() as p:
        selection.plan(cp.asarray(x), threshold, out, count, name)()
    check()
    number = int(count[0])
    found = cp.asnumpy(out)
    assert (found[number:] == -123).all(), "written behind the last element"
    return found[:number], p.counts


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", selection.NAMES)
@pytest.mark.parametrize("n", [*SIZES, 4096, 4097, 30_000])
def test_select_is_numpys(name, n, dtype):
    x = (generator().permutation(2 * n)[:n] - n).astype(dtype)  # distinct
    found, _ = selected(name, x, 3)
    expected = x[x > 3]
    if name.partition("_")[2] in selection.APPENDING:
        found, expected = np.sort(found), np.sort(expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", selection.NAMES)
def test_select_of_all_none_and_nan(name):
    x = np.arange(5000, dtype=np.float32)
    assert selected(name, x, 5000)[0].size == 0
    assert selected(name, x, -1)[0].size == 5000
    x[::3] = np.nan
    x[1] = np.inf
    found, _ = selected(name, x, -1)
    np.testing.assert_array_equal(np.sort(found), np.sort(x[x > -1]))
    count = cp.asarray(np.array([77], np.uint64))
    selection.plan(cp.zeros(0, np.float32), 0, cp.zeros(0, np.float32), count, name)()
    assert int(count[0]) == 0


def test_selections_read_x_once_or_twice_and_ask_once_a_warp():
    n = 3 * 512 * 24
    x = generator().random(n, dtype=np.float32)
    once = n // 8  # sectors
    for name, times in (("cuda_pipelined", 1), ("cuda_look_back", 1), ("cuda_two_passes", 2)):
        _, counts = selected(name, x, 0.5)
        assert times * once <= counts.global_load_sectors < 1.06 * times * once, name
    for name in ("cuda_append", "cuda_append_ballot", "cuda_append_coalesced", "numba_append_ballot"):
        assert selected(name, x, 0.5)[1].global_atomic_requests == n // 32


# -- bad input -------------------------------------------------------------------------------------------------------


def floats(n=64):
    return cp.zeros(n, np.float32)


def ints(n=64):
    return cp.zeros(n, np.int32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: kernel("cuda_histogram_fast"), ValueError, r"'cuda_histogram_fast'; choose one of \w*histogram"),
        (lambda: divergence.paths(floats(), floats(), 3, "lane"), ValueError, "ways is 3; .* compiled for 1, 2, 4"),
        (lambda: divergence.paths(floats(), floats(), 2, "block"), ValueError, "by is 'block'; .* lane or by warp"),
        (lambda: divergence.paths(np.zeros(4, np.float32), floats(4), 2, "lane"), TypeError, "x is a ndarray in host"),
        (lambda: divergence.condition(floats(), floats(63), 4), ValueError, r"out has shape \(63,\); it must be \(64,"),
        (lambda: divergence.condition(floats(), floats(), 17), ValueError, "steps is 17; .* 1 to 16"),
        (lambda: tasks.collatz(0, ints(), ints()), ValueError, "first is 0 for 64 numbers"),
        (lambda: tasks.collatz_queue(1, ints(), chunk=8), ValueError, "chunk is 8; a warp must take at least 32"),
        (lambda: tasks.mandelbrot(ints(), 10), ValueError, "it must be square"),
        (lambda: tasks.mandelbrot(ints(64).reshape(8, 8), 0), ValueError, "limit is 0"),
        (lambda: tasks.row_sums(ints(4), ints(), ints(4)), ValueError, r"start has shape \(4,\); it must be \(5,"),
        (
            lambda: histograms.plan(floats(), cp.zeros(256, np.uint32), "cuda_histogram_columns"),
            ValueError,
            "x is float32; the kernel takes uint8",
        ),
        (
            lambda: histograms.plan(cp.zeros(8, np.uint8)[::2], cp.zeros(256, np.uint32), "cuda_histogram_columns"),
            ValueError,
            "x is not contiguous",
        ),
        (
            lambda: selection.plan(floats(), 0, floats(32), cp.zeros(1, np.uint64), "cuda_append"),
            ValueError,
            "out has 32 elements; 64 may be",
        ),
        (
            lambda: selection.plan(floats(), 0, ints(), cp.zeros(1, np.uint64), "cuda_append"),
            ValueError,
            "out is int32; the kernel takes flo",
        ),
        (
            lambda: selection.plan(floats(), 0, floats(), ints(1), "cuda_append"),
            ValueError,
            "count is int32; the kernel takes uint64",
        ),
        (
            lambda: selection.plan(floats(), 0, floats(), cp.zeros(1, np.uint64), "fast"),
            ValueError,
            "no selection 'fast'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
