"""What a Hopper GPU takes for convolutions of any channels, groups, windows and strides, against float64: in the
simulator, and on a GPU; and what says so where it is slow."""

import re

import numpy as np
import pytest

from kernels.convolution import convolve, ladder, recordings
from kernels.convolution.beside import few_filters, patch
from kernels.convolution.common.sources import SOURCES
from kernels.convolution.definition import reference
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.hopper import backward_filter, padded, tile_sizes, wgmma_im2col
from kernels.convolution.hopper.backward_filter import Tile, Tiling
from kernels.convolution.hopper.tile_sizes import NARROW, Im2colTiles
from kernels.convolution.measured import every_shape
from tests.support.random_inputs import generator
from warpcourse.bench import hopper
from warplab import cp
from warplab.compile import nvrtc
from warplab.hardware import backend

DRAWN, PARTS = 300, 10  # convolutions of a run, and tests that share them: of half a second of processor time each
on_gpu = backend.name() == "gpu"
WIDE, THIN = Im2colTiles(64, 64, 1, 2, 1), Im2colTiles(64, 16, 1, 2, 1)
CASES = {
    "three channels, stride 2": Convolution(2, 3, 15, 16, 24, 7, 7, (3, 3), (2, 2)),
    "three channels, stride 1": Convolution(1, 3, 9, 7, 10, 3, 3, (1, 1)),
    "11 × 11 / 4": Convolution(1, 3, 23, 27, 16, 11, 11, (2, 2), (4, 4)),
    "patches beyond TMA's steps": Convolution(1, 3, 36, 40, 24, 16, 16, stride=(16, 16)),
    "one channel": Convolution(1, 1, 12, 13, 8, 3, 3),
    "no multiples of 8": Convolution(1, 12, 6, 5, 21, 2, 3, (0, 1)),
    "more channels, no multiples of 8": Convolution(1, 20, 6, 5, 22, 2, 3, (0, 1)),
    "few channels from few": Convolution(2, 5, 9, 11, 7, 2, 3, (1, 0), dilation=(2, 1)),
    "eight channels, 70 filters": Convolution(2, 8, 7, 5, 70, 3, 2, (1, 0), (2, 1)),
    "odd filters": Convolution(1, 24, 5, 6, 73, 1, 1),
    "two of dilated columns": Convolution(1, 6, 8, 9, 12, 2, 3, (1, 2), (1, 2), (2, 2)),
    "groups of four": Convolution(1, 32, 6, 7, 32, 3, 3, (1, 1), groups=8),
    "two groups of odd widths": Convolution(1, 70, 5, 4, 74, 2, 2, groups=2),
    "many groups of one filter": Convolution(1, 88, 5, 4, 11, 2, 2, groups=11),
    "a few channels from many, dilated": Convolution(1, 2, 9, 10, 66, 3, 2, (1, 2), dilation=(2, 3)),
    "one stride of two": Convolution(1, 3, 9, 10, 24, 3, 2, (1, 2), (1, 2), (2, 1)),
    "groups of odd widths": Convolution(1, 105, 5, 4, 111, 2, 2, groups=3),
    "windows that leave pixels out": Convolution(1, 18, 9, 10, 3, 2, 1, (0, 1), (3, 2)),
    "wide groups, stride 2": Convolution(1, 144, 5, 6, 80, 3, 3, (1, 1), (2, 2), groups=2),
    "groups of three": Convolution(2, 9, 6, 6, 15, 3, 3, (1, 1), groups=3),
    "strides longer than the filter": Convolution(2, 3, 9, 8, 5, 2, 2, stride=(3, 4)),
    "few filters of many channels": Convolution(2, 40, 7, 9, 3, 3, 2, (1, 0), (2, 1)),
    "one filter, long rows, dilated": Convolution(1, 21, 3, 40, 1, 2, 3, (0, 2), (1, 2), (1, 2)),
    "much padding": Convolution(1, 12, 3, 3, 8, 1, 1, (130, 2)),
}


@pytest.fixture
def few_kernels(monkeypatch):
    """Small tiles for all, so that few kernels are compiled, and stages and tiles come round again; on a GPU nothing
    of it."""
    if on_gpu:
        return
    monkeypatch.setattr(hopper, "multiprocessors", lambda: 4)
    monkeypatch.setattr(wgmma_im2col, "PARTS", (4,))
    monkeypatch.setattr(
        tile_sizes, "chosen", lambda conv, of: THIN if of == "forward" and conv.k <= THIN.bn * conv.groups else WIDE
    )
    monkeypatch.setattr(backward_filter, "MOST_STAGES", 2)
    monkeypatch.setattr(backward_filter, "tiling", lambda conv: Tiling(Tile(1, 1, 1), min(2, -(-conv.gemm[0] // 64))))


def taken(conv, of):
    """The step that "auto" stands for on a Hopper GPU."""
    return next(step for step in reversed(ladder.STEPS[of].values()) if not step.refuses(conv, "NHWC", np.float16))


def check(conv, random):
    arrays = {"x": conv.x_shape("NHWC"), "w": conv.w_shape("NHWC"), "dy": conv.y_shape("NHWC")}
    arrays = {name: random.uniform(-1, 1, shape).astype(np.float16) for name, shape in arrays.items()}
    bias = random.uniform(-1, 1, conv.k).astype(np.float32)
    for of, names in zip(PASSES, (("x", "w"), ("dy", "w"), ("x", "dy")), strict=True):
        inputs = [arrays[name] for name in names]
        exact = getattr(reference, of)(*inputs, conv, "NHWC")
        out = cp.asarray(np.full(exact.shape, np.nan, np.float16))
        step, after = taken(conv, of), ()
        if of == "forward":
            exact, after = np.maximum(exact + bias, 0), (cp.asarray(bias), True)
        step.launch(*map(cp.asarray, inputs), out, conv, *after)
        products = {"forward": conv.depth, "backward_data": conv.k * conv.r * conv.s}.get(of, conv.gemm[0])
        bound = 2.0**-11 * np.abs(exact) + 2.0**-20 * products + 2.0**-24
        wrong = np.argwhere(~(np.abs(cp.asnumpy(out) - exact) <= bound))
        assert not len(wrong), f"{of} of {conv} by {step.name}: {len(wrong)} of {exact.size} wrong, first {wrong[0]}"


@pytest.mark.parametrize("conv", CASES.values(), ids=CASES)
@pytest.mark.usefixtures("few_kernels")
def test_all_passes(conv):
    check(conv, np.random.default_rng(conv.depth))


@pytest.mark.parametrize("filters", [3, 20])
def test_blocks_that_share_a_depth_of_any_filters(monkeypatch, filters):
    tiles = Im2colTiles(64, 16 if filters < 16 else 64, 1, 2, 1, deep=3)
    monkeypatch.setattr(tile_sizes, "chosen", lambda conv, of: tiles)
    conv, random = Convolution(1, 72, 6, 5, filters, 3, 3, (1, 1)), generator()
    x, w = (random.uniform(-1, 1, shape("NHWC")).astype(np.float16) for shape in (conv.x_shape, conv.w_shape))
    bias, y = (
        random.uniform(-1, 1, filters).astype(np.float32),
        cp.asarray(np.full((1, 6, 5, filters), np.nan, np.float16)),
    )
    ladder.step(padded.NAME).launch(*map(cp.asarray, (x, w)), y, conv, cp.asarray(bias), True)
    exact = np.maximum(reference.forward(x, w, conv, "NHWC") + bias, 0)
    assert (np.abs(cp.asnumpy(y) - exact) <= 2.0**-11 * np.abs(exact) + 2.0**-20 * conv.depth).all()


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("few_kernels")
def test_random_convolutions(part):
    random = generator()
    for _ in range(DRAWN // PARTS):
        check(every_shape.random_convolution(random, 24, 9, 2), random)


@pytest.mark.gpu
def test_all_passes_on_a_gpu():
    every_shape.compile_ahead((conv, of) for conv in CASES.values() for of in PASSES)
    for conv in CASES.values():
        check(conv, np.random.default_rng(conv.depth))


@pytest.mark.gpu
def test_random_convolutions_on_a_gpu():
    random = generator()
    drawn = [every_shape.random_convolution(random, 160, 24, 3) for _ in range(DRAWN)]
    every_shape.compile_ahead((conv, of) for conv in drawn for of in PASSES)
    for conv in drawn:
        check(conv, random)


def test_nothing_but_a_convolutions_own_type_is_slow():
    """Of the table's layers and of those drawn, none is left to step 4."""
    layers = [*every_shape.NETWORKS.values(), *(layer.convolution for layer in every_shape.drawn())]
    for conv in layers:
        for of in PASSES:
            assert taken(conv, of).name != "mma_nhwc", conv


@pytest.mark.parametrize(
    ("conv", "of", "remark"),
    [
        (Convolution(1, 8, 4, 4, 8, 3, 3, (600, 1)), "backward_data", "reaches 128 pixels beyond an image"),
        (Convolution(1, 12, 4, 4, 12, 9, 9, (4, 4), groups=12), "forward", "a thread for each element"),
        (Convolution(1, 245, 8, 8, 245, 3, 3, groups=7), "forward", ""),
        (Convolution(1, 3, 32, 32, 16, 11, 11, stride=(4, 4)), "backward_data", ""),
        (Convolution(1, 128, 8, 8, 128, 3, 3, groups=32), "backward_filter", ""),
    ],
)
def test_a_plan_that_is_slow_says_so(monkeypatch, conv, of, remark):
    monkeypatch.setattr(hopper, "available", lambda: True)
    plan = ladder.planned(conv, "NHWC", np.float16, of)
    assert re.search(remark, plan.remark)
    assert bool(plan.remark) == bool(remark)


@pytest.mark.parametrize("tiles", NARROW, ids=str)
def test_machine_code_of_narrow_tiles(tiles):
    options = *hopper.include(), *tiles.options, "-DBK=16", "-DBIAS=1", "-DRELU=1", "-DDIRECT=1"
    log, *_ = nvrtc.assemble_cuda(wgmma_im2col.FILE.read_text("utf-8"), wgmma_im2col.FILE.name, "90a", options)
    assert "0 bytes spill stores" in log
    assert not re.search(r"warning|C75\d\d|Potential Performance", log), log


def test_machine_code_of_patches():
    """As many blocks on a multiprocessor as the kernel is launched with, and nothing spilled for it."""
    text, options = SOURCES.text(patch.FILE), SOURCES.options(patch.FILE)
    entries = tuple(f"conv_mma_patch<{eights}, {pairs}, 8>" for eights in (4, 8) for pairs in ("true", "false"))
    log, *_ = nvrtc.assemble_cuda(text, patch.FILE, 90, options, entries)
    assert log.count("0 bytes spill stores") == len(entries) + 1  # and what turns filters round
    assert max(map(int, re.findall(r"Used (\d+) registers", log))) <= 65536 // (5 * patch.THREADS) // 8 * 8


def test_few_filters_take_one_product_without_copies():
    """Whatever is loaded at a time, nothing is spilled for as many blocks as the kernel is launched with."""
    assert taken(CASES["few filters of many channels"], "backward_filter").name == few_filters.NAME
    text, options = SOURCES.text(few_filters.FILE), SOURCES.options(few_filters.FILE)
    entries = tuple(f"few_filters<{sizes}>" for sizes in ("1, 1, 8, 1", "3, 3, 2, 2", "4, 3, 2, 1", "2, 4, 2, 0"))
    log, *_ = nvrtc.assemble_cuda(text, few_filters.FILE, 90, options, entries)
    assert log.count("0 bytes spill stores") == len(entries)
    most = 65536 // (few_filters.AT_WORK * 32 * few_filters.WARPS) // 8 * 8
    assert max(map(int, re.findall(r"Used (\d+) registers", log))) <= most


def test_workspaces_are_as_large_as_said():
    """The copies of each case lie side by side, each at a multiple of 16 bytes."""
    for conv in CASES.values():
        for of in PASSES:
            step = ladder.step(padded.NAME, of)
            if not step.refuses(conv, "NHWC", np.float16):
                workspace = np.zeros(step.workspace_bytes(conv, np.float16), np.uint8)
                copies = [copy for copy in step._copies(conv, workspace) if copy is not None]
                assert sum(copy.nbytes for copy in copies) <= workspace.nbytes
                assert all((copy.ctypes.data - workspace.ctypes.data) % 16 == 0 for copy in copies)


@pytest.mark.skipif(on_gpu, reason="this GPU need not be a Hopper")
@pytest.mark.parametrize("of", PASSES)
def test_auto_takes_it_on_a_hopper_gpu_for_arrays_at_multiples_of_16_bytes(monkeypatch, of):
    monkeypatch.setattr(hopper, "available", lambda: True)
    steps = [ladder.fastest(CASES["groups of three"], "NHWC", np.float16, of, address) for address in (16, 8)]
    assert [step.name == padded.NAME for step in steps] == [True, False]


def test_headers_quote_what_was_recorded():
    def header(file):
        return " ".join(SOURCES.text(file).partition("#include")[0].replace("//", "").split())

    value = recordings.values()["every_shape"]
    tables, text = value["tables"], header("hopper/padded.cu")
    for of, words in zip(PASSES, ("forward", "the gradient of x", "that of w"), strict=True):
        found = tables[f"{of}, drawn"]
        assert f"{words} {found['geometric_mean']:.2f} and {found['least']:.2f}" in text
        for again in value["processes"]:
            assert again[f"{of}, drawn"]["cold"]["mean"] == pytest.approx(found["geometric_mean"], rel=0.04)
    rows = [(of, row) for of in PASSES for row in tables[f"{of}, drawn"]["rows"]]
    assert sum(row["step"] != padded.NAME for _, row in rows) == 4
    assert [of for of, row in rows if row["ratio"] < 0.8] == ["forward", *["backward_filter"] * 2]
    assert all(
        row["remark"] or 3 * row["ratio"] > 1 for table in tables.values() for row in table["rows"]
    )  # ladder.Plan
    by_layer = {row["layer"]: row for row in tables["forward"]["rows"] if row["step"] == "mma_patch"}
    for layer, words in (
        ("Inception stem", "{:.0f} µs for it, {:.2f} of the speed"),
        ("ResNet conv1", "7 × 7 / 2 {:.0f} µs and {:.2f}"),
        ("VGG conv1_1", "first layer {:.0f} µs and {:.2f}"),
        ("U-Net first", "U-Net's {:.0f} µs and {:.2f}"),
    ):
        (row,) = (row for name, row in by_layer.items() if name.startswith(f"{layer},"))
        assert words.format(1e6 * row["seconds"], row["ratio"]) in header("beside/patch.cu")


def test_the_call_takes_any_channels_and_groups():
    conv = CASES["groups of three"]
    x, w = (cp.asarray(np.ones(shape("NHWC"), np.float16)) for shape in (conv.x_shape, conv.w_shape))
    found = convolve.forward(x, w, padding=1, groups=3, layout="NHWC", step=padded.NAME)
    np.testing.assert_array_equal(
        cp.asnumpy(found), reference.forward(cp.asnumpy(x), cp.asnumpy(w), conv, "NHWC").astype(np.float16)
    )
