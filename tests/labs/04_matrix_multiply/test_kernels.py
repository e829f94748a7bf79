"""Lab 04's matrix products on the active backend against float64, their counters in the simulator, their recordings."""

import functools
import os
import subprocess
import sys
from dataclasses import astuple, replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.matmul import (
    STEPS,
    autotune,
    counting,
    cublas_kernels,
    figures,
    matmul,
    measurements,
    recordings,
    tiles,
)
from kernels.matmul.benchmark import BENCHMARK
from kernels.matmul.counting import counted as counted_step
from kernels.matmul.counting import per_multiply_add
from kernels.matmul.ladder import SOURCES, launch_tuned
from kernels.matmul.launches import TUNED
from kernels.matmul.measurements import MEASUREMENTS, SHAPES
from kernels.matmul.product_diagram import draw_product
from kernels.matmul.tiles import Tiles
from tests.support.matrix_products import guarded, operands
from tools import ncu
from warpcourse.bench import random_inputs, timing
from warpcourse.paths import COURSE
from warplab import cp, profile
from warplab.compile.nvrtc import compile_cuda_program
from warplab.hardware import backend
from warplab.launch.kernel_source import CudaSource

SMALL = ((1, 1, 1), (2, 3, 1), (31, 33, 32), (33, 31, 41), (3, 130, 66), (129, 2, 9))
WHOLE = (128, 128, 32)
WARPS_FMA = 128 * 128 * 32 // 32  # multiply-adds of WHOLE by whole warps
RECORDED = recordings.recorded("ladder")
VALUES = recordings.values()


def check(a, b, found):
    """Each element within the bound of a float32 sum of k products, in any order."""
    exact, size = a.astype(np.float64) @ b.astype(np.float64), np.abs(a) @ np.abs(b).astype(np.float64)
    np.testing.assert_array_less(np.abs(found - exact), 2.0**-24 * (a.shape[1] + 1) * size + 1e-30)


def product(name, a, b, offset=0):
    return guarded(functools.partial(matmul, kernel=name), a, b, offset=offset)


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aligned", ["true", "false"])
@pytest.mark.parametrize("name", ["vectorised", "warp_tile", "async_copies"])
def test_no_instance_compiles_with_a_warning(name, aligned):
    text = (COURSE / "kernels" / "matmul" / STEPS[name].file).read_text(encoding="utf-8")
    assert compile_cuda_program(text, name_expressions=(f"matmul_{name}<{aligned}>",)).log == ""


@pytest.mark.parametrize("name", STEPS)
def test_every_step_at_awkward_sizes(name):
    for shape in SMALL:
        a, b = operands(*shape)
        check(a, b, product(name, a, b))


@pytest.mark.parametrize("name", STEPS)
def test_whole_tiles_and_tails_of_vectors(name):
    for shape in (WHOLE, (132, 136, 20)):
        a, b = operands(*shape)
        check(a, b, product(name, a, b))


@pytest.mark.parametrize("name", ["vectorised", "warp_tile", "async_copies", "tuned"])
def test_a_result_that_no_vector_fits(name):
    a, b = operands(36, 40, 12)
    check(a, b, product(name, a, b, offset=1))
    step = STEPS[name]
    memory = cp.asarray(np.zeros(36 * 40 + 1, np.float32))
    a, b = cp.asarray(a), cp.asarray(b)
    assert step.aligned(a, b, memory[:-1].reshape(36, 40))
    assert not step.aligned(a, b, memory[1:].reshape(36, 40))


@pytest.mark.parametrize(
    "sizes",
    [
        *TUNED,
        Tiles(64, 128, 8, 64, 64, 16, 8, 2, 4, 2),
        Tiles(16, 32, 32, 16, 32, 4, 4, 3, 8, 8),
        Tiles(64, 16, 16, 32, 16, 4, 4, 4, 6, 1),
    ],
    ids=str,
)
def test_other_tiles(sizes):
    for m, n, k in ((97, 132, 50), (70, 71, 9)):
        a, b = operands(m, n, k)
        out = cp.asarray(np.full((m, n), np.nan, np.float32))
        launch_tuned(sizes, n % 4 == 0, cp.asarray(a), cp.asarray(b), out)
        check(a, b, cp.asnumpy(out))


def test_the_result_is_allocated_and_empty_products_are_zeros():
    a, b = operands(5, 7, 3)
    check(a, b, cp.asnumpy(matmul(cp.asarray(a), cp.asarray(b))))
    empty = matmul(cp.zeros((5, 0), np.float32), cp.zeros((0, 7), np.float32), cp.asarray(np.ones((5, 7), np.float32)))
    assert not cp.asnumpy(empty).any()
    assert matmul(cp.zeros((0, 3), np.float32), cp.zeros((3, 7), np.float32)).shape == (0, 7)


def test_wrong_arguments_are_named():
    a, b = (cp.zeros(shape, np.float32) for shape in ((4, 6), (6, 8)))
    out = cp.zeros((4, 8), np.float32)
    for arguments, error, message in (
        ((np.zeros((4, 6), np.float32), b), TypeError, r"a is a ndarray in host memory; copy it with cp\.asarray\(a\)"),
        ((a, cp.zeros((6, 8), np.float64)), ValueError, "b is float64; the kernel takes float32"),
        ((a, cp.zeros(6, np.float32)), ValueError, r"b has shape \(6,\); it must be a matrix"),
        ((a, cp.zeros((5, 8), np.float32)), ValueError, r"columns of a \(6\) must be as many as the rows of b \(5\)"),
        ((a, b, cp.zeros((8, 4), np.float32)), ValueError, r"out has shape \(8, 4\); the product has \(4, 8\)"),
        ((a, cp.zeros((8, 6), np.float32).T), ValueError, r"b is not contiguous, .* cp\.ascontiguousarray\(b\)"),
        ((out[:, :4][:, :4], b, out), ValueError, "contiguous|as many as"),
        ((a, b, out, "fast"), ValueError, "there is no kernel 'fast'; choose one of naive, coalesced.* split_k"),
        ((a, b, out, 10), ValueError, "chosen by name, not by 10; choose one of naive, coalesced.* split_k"),
        ((a, b, out, ["tuned"]), ValueError, "chosen by name, not by"),
    ):
        with pytest.raises(error, match=message):
            matmul(*arguments)
    both = cp.zeros(100, np.float32)
    with pytest.raises(ValueError, match="a and out overlap"):
        matmul(both[:36].reshape(6, 6), cp.zeros((6, 6), np.float32), both[30:66].reshape(6, 6))
    tall, thin = cp.zeros((65535 * 8 + 1, 1), np.float32), cp.zeros((1, 1), np.float32)
    with pytest.raises(ValueError, match=r"needs a grid of 65,536 blocks in y.*take tuned"):
        matmul(tall, thin, kernel="coalesced")
    with pytest.raises(ValueError, match="tuned takes fewer than 16,777,216"):
        matmul(cp.zeros((1, 2**24), np.float32), cp.zeros((2**24, 1), np.float32))


# -- what the ladder gains -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted():
    """Counters of each step at WHOLE; the last one with tiles of 128 × 128."""
    if backend.name() != "simulator":
        pytest.skip("the simulator counts")
    a, b = (cp.asarray(x) for x in operands(*WHOLE))
    result = {}
    for name, step in STEPS.items():
        out = cp.zeros((128, 128), np.float32)
        with profile() as p:
            if name == "tuned":
                launch_tuned(TUNED[0], True, a, b, out)
            else:
                step.launch(a, b, out)
        result[name] = p.counts
    return result


def test_every_step_does_the_same_arithmetic(counted):
    for name, counts in counted.items():
        assert counts.flops_f32 == 2 * 128 * 128 * 32, name


def test_global_sectors_fall_from_step_to_step(counted):
    m, n, k = WHOLE
    expected = {
        "naive": m * n * k // 32 * 33,  # a row of A by 32 rows: 32 sectors, and the one element of B
        "coalesced": m * n * k // 32 * 5,
        "shared_tile": 2 * m * n * k // 32 // 8,  # each element for 32 others, eight a sector
        "register_tile_1d": 2 * m * n * k // 64 // 8,
        **dict.fromkeys(
            ("register_tile_2d", "vectorised", "warp_tile", "async_copies", "tuned"), 2 * m * n * k // 1024
        ),
    }
    assert {name: counts.global_load_sectors for name, counts in counted.items()} == expected
    stores = {name: counts.global_store_sectors for name, counts in counted.items()}
    one_each = m * n // 8
    assert stores["naive"] == 8 * one_each
    assert stores["register_tile_2d"] == 8 * one_each, "the columns of a thread lie side by side"
    assert stores["vectorised"] == 2 * one_each
    for name in ("coalesced", "shared_tile", "register_tile_1d", "warp_tile", "async_copies", "tuned"):
        assert stores[name] == one_each, name


def test_passes_through_shared_memory_for_a_multiply_add(counted):
    passes = {name: counts.shared_load_wavefronts / WARPS_FMA for name, counts in counted.items()}
    assert passes["naive"] == passes["coalesced"] == 0
    assert passes["shared_tile"] == 1.5
    assert passes["register_tile_1d"] == 0.625
    assert passes["register_tile_2d"] == passes["vectorised"] == 0.3125
    # Eight passes for 64 multiply-adds; the last step loads once more, after the last tile.
    assert passes["warp_tile"] == passes["async_copies"] == 0.125
    assert 0.125 < passes["tuned"] < 0.13


def test_conflicts_are_there_and_go(counted):
    conflicts = {name: counts.shared_load_conflicts for name, counts in counted.items()}
    assert conflicts["register_tile_2d"] == conflicts["vectorised"] > 0
    assert not any(
        conflicts[name] for name in ("shared_tile", "register_tile_1d", "warp_tile", "async_copies", "tuned")
    )


def test_the_copies_take_the_place_of_loads_and_stores(counted):
    for name in ("async_copies", "tuned"):
        assert counted[name].shared_store_wavefronts == 0
        assert counted[name].shared_copy_requests > 0
    assert counted["warp_tile"].shared_copy_requests == 0
    assert counted["warp_tile"].shared_store_wavefronts > 0


def test_a_step_is_counted_on_whole_tiles():
    launch = counted_step("warp_tile", depth=16)
    assert per_multiply_add(launch.counts) == {"sectors": 2 / 32, "passes": 0.125 + 2 / 128}
    assert counted_step("tuned", depth=16).grid[0] == 2, "tiles of 64 × 128, as for 4096 × 4096 × 4096"
    assert counted_step("tuned", depth=16, sizes=TUNED[0]).grid[0] == 1
    with pytest.raises(ValueError, match="there is no kernel 'fast'"):
        counted_step("fast")


def test_a_wrong_product_is_not_counted(monkeypatch):
    monkeypatch.setattr(counting, "simulate", lambda *arguments, **options: None)
    with pytest.raises(RuntimeError, match="naive computed a wrong product of 128 × 64 and 64 × 128"):
        counted_step("naive")


# -- the picture of a launch -----------------------------------------------------------------------------------------


def levels(figure):
    """The levels that the pictures of A, B and C show."""
    return [np.asarray(figure.axes[k].images[0].get_array()) for k in (2, 1, 3)]


def test_the_picture_of_a_product_tells_who_computes_what():
    a, b, c = levels(draw_product(counted_step("register_tile_1d", depth=16), 128, 128, 16))
    assert (a[:64] >= 1).all()
    assert not a[64:].any()
    assert (b[:, :64] >= 1).all()
    assert not b[:, 64:].any()
    assert (a[:4, :8] == 2).all()
    assert (a == 2).sum() == (b == 2).sum() == 32
    assert (c[:8, 0] == 3).all()
    assert (c[:8, 1:32] == 2).all()
    assert (c >= 2).sum() == 8 * 32
    assert (c >= 1).sum() == 64 * 64


def test_the_picture_shows_the_tile_of_a_warp():
    *_, rows = levels(draw_product(counted_step("vectorised", depth=16), 128, 128, 16))
    *_, tile = levels(draw_product(counted_step("warp_tile", depth=16), 128, 128, 16))
    assert (rows[:16] >= 2).all()
    assert (tile[:64, :32] >= 2).all()
    assert (rows >= 2).sum() == (tile >= 2).sum() == 32 * 64
    assert (rows[:8, :8] == 3).all()
    assert [int(x) for x in np.flatnonzero((tile == 3).any(axis=0))] == [0, 1, 2, 3, 16, 17, 18, 19]


def test_the_picture_needs_the_names_of_the_matrices():
    launch = counted_step("coalesced", depth=16)
    for access in launch.accesses:
        access.array = {"a": "left"}.get(access.array, access.array)
    with pytest.raises(ValueError, match="the trace of matmul_coalesced holds no load of an array a"):
        draw_product(launch, 128, 128, 16)


# -- tiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"bm": 0}, "at least 1"),
        ({"wm": 48}, "wm must divide bm"),
        ({"tm": 6}, "tm must divide wm"),
        ({"tm": 16}, "4 × 8, 8 × 4 or 1 × 32"),
        ({"bk": 12}, "multiple of 8"),
        ({"stages": 1}, "one stage is for 8 rows at most, of 128 columns"),
        ({"bn": 1024}, "words of B|1024 threads"),
        ({"bk": 128}, "bytes of shared memory"),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(changed, rule):
    names = Tiles.__dataclass_fields__
    right = dict(zip(names, astuple(TUNED[0]), strict=True))
    with pytest.raises(ValueError, match=rule):
        Tiles(**right | changed)


def test_the_table_holds_every_measured_shape_and_the_nearest_is_taken():
    rows = tiles.table()["shapes"]
    assert [tuple(row["shape"]) for row in rows] == autotune.MEASURED
    assert tiles.table()["device"].startswith("NVIDIA ")
    candidates = autotune.candidates()
    assert tiles.table()["candidates"] == len(candidates) == len(set(candidates))
    for row in rows:
        assert Tiles(*row["tiles"]) in candidates
        assert tiles.chosen(*row["shape"]) == Tiles(*row["tiles"])
    assert tiles.chosen(4095, 4097, 4093) == tiles.chosen(4096, 4096, 4096)
    assert tiles.chosen(1, 1, 1) == tiles.chosen(128, 128, 128)
    small, large = tiles.chosen(256, 256, 256), tiles.chosen(8192, 8192, 8192)
    assert small.bm * small.bn < large.bm * large.bn


def test_the_sizes_for_large_matrices_compile_without_spills():
    from warplab.launch import resources

    code = SOURCES.text("9_tuned.cu")
    for sizes in {tiles.chosen(side, side, side) for side in (2048, 4096)}:
        found = resources.of(CudaSource(code, sizes.entry(True), ("-std=c++17",)))
        assert found.spill_bytes == 0, sizes
        assert found.registers * sizes.threads * sizes.blocks <= 65536, sizes


# -- recordings ------------------------------------------------------------------------------------------------------


def test_every_measurement_is_recorded_on_a_named_gpu():
    assert set(VALUES) == set(MEASUREMENTS)
    assert RECORDED.device == tiles.table()["device"]
    assert ncu.recording("matmul")["device"].startswith("NVIDIA H")
    assert [row["name"] for row in VALUES["ladder"]["rows"]] == ["cublas", *STEPS]
    assert [tuple(row["shape"]) for row in VALUES["shapes"]] == list(SHAPES)
    assert BENCHMARK.summary(VALUES)["correct"]
    last = VALUES["large_ladder"]["rows"][-1]
    assert BENCHMARK.summary(VALUES)["large_ladder"]["ratio_to_cublas"]["tuned"] == last["ratio_to_cublas"]
    assert "8192 × 8192 × 8192; peak of fused multiply-adds" in BENCHMARK.text(VALUES)


def test_each_step_is_faster_than_the_one_before_and_the_last_near_cublas():
    rates = [row["tflops"] for row in VALUES["ladder"]["rows"] if row["step"]]
    assert rates == sorted(rates)
    for key, side in (("ladder", 4096), ("large_ladder", 8192)):
        assert VALUES[key]["side"] == side
        last = VALUES[key]["rows"][-1]
        assert last["name"] == "tuned"
        assert last["ratio_to_cublas"] >= 0.92
        assert last["tflops"] < VALUES[key]["peak_tflops"]


def header(name):
    lines = [line.strip() for line in SOURCES.text(STEPS[name].file).splitlines()]
    return " ".join(line[2:].strip() for line in lines if line.startswith("//"))


@pytest.mark.parametrize("name", STEPS)
def test_the_headers_give_the_recorded_rates(name):
    row = next(row for row in VALUES["ladder"]["rows"] if row["name"] == name)
    text = header(name)
    assert text.startswith(f"{STEPS[name].number}. ")
    assert f"Reached: {row['tflops']:.3g} TFLOP/s, {row['ratio_to_cublas']:.3g} of cuBLAS" in text
    if name == "tuned":
        large = VALUES["large_ladder"]["rows"][-1]
        assert f"{large['tflops']:.3g} TFLOP/s, {large['ratio_to_cublas']:.3g} of cuBLAS, at 8192" in text
    if name == "naive":
        peak, library = VALUES["ladder"]["peak_tflops"], VALUES["ladder"]["rows"][0]["tflops"]
        assert f"cuBLAS ({library:.3g} TFLOP/s)" in text
        assert f"the peak of peak.cu ({peak:.3g} TFLOP/s)" in text


def test_the_traffic_on_the_gpu_is_what_the_arithmetic_says():
    rows = {row["name"]: row for row in VALUES["traffic"]}
    products = 4096**3
    for name, sectors in (("naive", 33 / 32), ("coalesced", 5 / 32), ("shared_tile", 1 / 128), ("warp_tile", 1 / 512)):
        assert rows[name]["global_load_sectors"] == pytest.approx(sectors * products, rel=1e-3)
    assert all(row["ffma_threads"] == pytest.approx(products, rel=0.01) for row in rows.values())


def test_figures():
    ladder, shapes, traffic, copy = (
        recordings.measure(key, MEASUREMENTS[key]) for key in ("ladder", "shapes", "traffic", "copy_gbps")
    )
    drawn = [figures.draw_ladder(ladder), figures.draw_shapes(shapes)]
    drawn += [figures.draw_roofline(ladder, traffic, copy, level) for level in figures.LEVELS]
    drawn += [figures.draw_pass_roofline(ladder, {"naive": 33, "tuned": 0.17}, 128), figures.draw_limits(traffic)]
    for figure in drawn:
        assert isinstance(figure, Figure)
        texts = [figure.get_suptitle(), *(ax.get_title(loc="left") for ax in figure.axes)]
        assert any("NVIDIA H100" in text for text in texts)
    points = figures.intensities(traffic.value, 4096)
    assert points["naive"]["l1"] < points["coalesced"]["l1"] < points["shared_tile"]["l1"] < points["warp_tile"]["l1"]
    with pytest.raises(ValueError, match="there is no level 'l3'"):
        figures.draw_roofline(ladder, traffic, copy, "l3")
    nothing = replace(traffic, value=None)
    with pytest.raises(ValueError, match="without ncu"):
        figures.draw_roofline(ladder, nothing, copy)
    with pytest.raises(ValueError, match="without ncu"):
        figures.draw_limits(nothing)
    other = replace(traffic, device="Some GPU")
    assert "recorded on Some GPU" in figures.draw_roofline(ladder, other, copy).axes[0].get_xlabel()


def test_no_step_passes_the_roof_of_the_way_to_shared_memory():
    """At one pass per clock, as ncu counts the passes; the naive kernel runs at that limit."""
    ladder = recordings.measure("ladder", MEASUREMENTS["ladder"])
    passes = {row["name"]: row["shared_wavefronts"] / row["ffma_threads"] * 32 for row in VALUES["traffic"]}
    passes |= {"naive": 33, "coalesced": 2}
    axes = figures.draw_pass_roofline(ladder, passes, 128).axes[0]
    (x, y), points = axes.lines[0].get_data(), [line.get_data() for line in axes.lines[1:]]
    assert len(points) == len(VALUES["ladder"]["rows"])
    shares = [float(rate[0] / np.interp(intensity[0], x, y)) for intensity, rate in points]
    assert max(shares) < 1.001
    assert shares[1] == pytest.approx(1, abs=0.002), "the naive kernel's point; cuBLAS's is the first"


def test_ratios_are_drawn_as_arithmetic():
    axes = figures.draw_ratios({256: 1.0, 384: 2.0}, {"peaks": 1.5}, "one over the other").axes[0]
    assert "no measurement" in axes.get_title(loc="left")
    assert axes.get_ylim()[1] == pytest.approx(2.2)


def test_what_ncu_cannot_count_here_is_taken_from_the_recording(monkeypatch):
    assert measurements.by_ncu("traffic").value == VALUES["traffic"]
    assert measurements.multiprocessor() == (RECORDED.machine["multiprocessors"], 128)
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(random_inputs, "seed_cupy", lambda: None)
    monkeypatch.setattr(timing, "machine", lambda gpus: {"device": "Some GPU", "date": "2001-02-03"})

    def refused():
        raise RuntimeError("ncu ended with code 1")

    for function, live in ((refused, False), (lambda: None, False), (lambda: [{"name": "naive"}], True)):
        monkeypatch.setitem(measurements.MEASUREMENTS, "traffic", function)
        found = measurements.by_ncu("traffic")
        assert found.live == live
        assert (found.value == VALUES["traffic"]) == (not live)
        assert found.device == ("Some GPU" if live else RECORDED.device)


def test_the_library_takes_kernels_by_shape():
    rows = {tuple(row["shape"]): row["kernels"] for row in VALUES["library_kernels"]}
    assert list(rows) == list(SHAPES)
    assert len({kernels[0]["kernel"] for kernels in rows.values()}) >= 5
    assert any("splitK" in kernel["kernel"] for kernel in rows[128, 128, 65536])


def test_the_names_of_the_librarys_kernels_tell_its_tiles():
    found = {tuple(row["shape"]): row for row in cublas_kernels.choices(VALUES["library_kernels"])}
    assert found[128, 128, 128] == {"shape": [128, 128, 128], "tile": [32, 32], "tiles": 16, "parts": 1}
    assert found[128, 128, 65536] == {"shape": [128, 128, 65536], "tile": [128, 64], "tiles": 2, "parts": 128}
    assert all(row["tile"] for row in found.values())
    unknown = [{"shape": [1, 1, 1], "kernels": [{"kernel": "gemv", "grid": "(1, 2, 3)"}]}]
    assert cublas_kernels.choices(unknown) == [{"shape": [1, 1, 1], "tile": None, "tiles": 2, "parts": 3}]


@pytest.mark.parametrize("module", ["benchmark", "autotune"])
def test_without_a_gpu_measuring_ends_with_code_2(module):
    environment = os.environ | {"WARPLAB_BACKEND": "simulator"}
    done = subprocess.run(
        [sys.executable, "-m", f"kernels.matmul.{module}"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 2
    assert "needs an NVIDIA GPU" in done.stderr


def test_the_files_are_json_that_git_can_compare():
    assert len(SOURCES.text("tiles.json").splitlines()) == len(autotune.MEASURED) + 7
