"""The gradient of w on Hopper: what the kernel compiles to, what it computes in the simulator, how it is planned, and
what it refuses."""

import os
import re

import numpy as np
import pytest

from kernels.convolution.common.sources import INCLUDE
from kernels.convolution.definition import networks, reference
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import backward_filter
from kernels.convolution.hopper.backward_filter import BACKWARD_FILTER, FILE, TILES, Tile, Tiling, tiling
from warpcourse.bench import hopper
from warplab import cp
from warplab.compile import nvrtc
from warplab.hardware import backend
from warplab.simulator import DataRace

(STEP,) = BACKWARD_FILTER


@pytest.fixture
def in_simulator(monkeypatch):
    """Launches run in the simulator, with so few stages that they come round again."""
    if backend.name() == "gpu":
        pytest.skip("the tests on a GPU run other sizes there")
    monkeypatch.setattr(backward_filter, "MOST_STAGES", 2)


def half(random, shape):
    return random.uniform(-1, 1, shape).astype(np.float16)


def check(found, exact, pixels):
    """One rounding to float16, and float32 sums of so many products of at most 1."""
    bound = 2.0**-11 * np.abs(exact) + 2.0**-20 * pixels + 2.0**-24
    wrong = ~(np.abs(found - exact) <= bound)
    first = tuple(np.argwhere(wrong)[0]) if wrong.any() else None
    assert first is None, (
        f"{wrong.sum()} of {wrong.size} are wrong, the first at {first}: {found[first]}, not {exact[first]}"
    )


CASES = {
    "1x1": (Convolution(1, 8, 9, 8, 16, 1, 1), Tiling(Tile(1, 1, 1), 1)),
    "1x1, two splits, tile beyond the filters": (Convolution(2, 72, 8, 9, 8, 1, 1), Tiling(Tile(2, 2, 2), 2)),
    "1x1, stride 2": (Convolution(2, 16, 7, 6, 8, 1, 1, stride=(2, 2)), Tiling(Tile(1, 1, 1), 1)),
    "3x3": (Convolution(2, 8, 9, 11, 72, 3, 3, padding=(1, 1)), Tiling(Tile(1, 2, 1), 3)),
    "3x3, stride 2": (Convolution(1, 72, 9, 8, 8, 3, 3, padding=(1, 1), stride=(2, 2)), Tiling(Tile(1, 3, 1), 1)),
    "padding 2, dilation 2": (
        Convolution(2, 8, 7, 7, 8, 3, 3, padding=(2, 2), dilation=(2, 2)),
        Tiling(Tile(1, 4, 1), 2),
    ),
    "uneven": (
        Convolution(1, 8, 9, 10, 136, 2, 3, padding=(0, 2), stride=(3, 1), dilation=(1, 3)),
        Tiling(Tile(2, 2, 2), 1),
    ),
    "two rows of boxes in a group": (Convolution(1, 8, 4, 4, 136, 1, 1), Tiling(Tile(2, 1, 1), 1)),
}


@pytest.mark.parametrize(("conv", "chosen"), CASES.values(), ids=CASES)
def test_the_gradient_in_the_simulator(in_simulator, conv, chosen):
    random = np.random.default_rng(conv.depth)
    x, dy = half(random, conv.x_shape("NHWC")), half(random, conv.y_shape("NHWC"))
    dw = cp.asarray(np.full(conv.w_shape("NHWC"), np.nan, np.float16))
    STEP.launch(cp.asarray(x), cp.asarray(dy), dw, conv, chosen=chosen)
    check(cp.asnumpy(dw), reference.backward_filter(x, dy, conv, "NHWC"), conv.gemm[0])


def test_the_workspace_that_is_asked_for_is_enough(in_simulator, monkeypatch):
    conv, chosen = CASES["3x3"]
    monkeypatch.setattr(backward_filter, "tiling", lambda conv: chosen)
    random = np.random.default_rng(7)
    x, dy = half(random, conv.x_shape("NHWC")), half(random, conv.y_shape("NHWC"))
    dw, size = cp.asarray(np.full(conv.w_shape("NHWC"), np.nan, np.float16)), STEP.workspace_bytes(conv, np.float16)
    assert size == 3 * 128 * 9 * 8 * 4  # 72 filters rounded up to boxes
    workspace = cp.asarray(np.full(size, 255, np.uint8))
    STEP.launch(cp.asarray(x), cp.asarray(dy), dw, conv, workspace)
    check(cp.asnumpy(dw), reference.backward_filter(x, dy, conv, "NHWC"), conv.gemm[0])


def test_adders_that_do_not_wait_for_all_bytes_are_noticed(in_simulator, monkeypatch, tmp_path):
    text = FILE.read_text(encoding="utf-8")
    wrong = text.replace("barrier_expect(barrier, STAGE_BYTES)", "barrier_expect(barrier, STAGE_BYTES - BOX_BYTES)")
    assert wrong != text
    (tmp_path / FILE.name).write_text(wrong, encoding="utf-8")
    monkeypatch.setattr(backward_filter, "FILE", tmp_path / FILE.name)
    conv, chosen = CASES["1x1"]
    x, dy, dw = (cp.zeros(shape("NHWC"), np.float16) for shape in (conv.x_shape, conv.y_shape, conv.w_shape))
    with pytest.raises(DataRace, match=r"reads byte .* of shared memory .* and nothing orders the two"):
        STEP.launch(x, dy, dw, conv, chosen=chosen)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_machine_code_for_hopper_is_as_it_must_be(tile, flat):
    options = *hopper.include(), *INCLUDE, f"-DFLAT={int(flat)}", *tile.options
    log, *_ = nvrtc.assemble_cuda(FILE.read_text(encoding="utf-8"), FILE.name, "90a", options)
    assert log.count("0 bytes spill stores") == 2
    # ptxas warns (C75xx) when it must wait for each wgmma.
    assert not re.search(r"warning|C75\d\d|Potential Performance", log), log
    registers = max(map(int, re.findall(r"Used (\d+) registers", log)))
    assert registers * tile.threads <= 65536
    assert tile.stages >= 3


def test_the_instructions_of_hopper_are_there():
    options = "-arch=sm_90a", *hopper.include(), *INCLUDE, *Tile(2, 3, 2).options
    ptx = nvrtc.compile_cuda(FILE.read_text(encoding="utf-8"), options=options)
    products = re.findall(r"wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16 .*?, 1, 1, 1, 1;", ptx, re.S)
    assert len(products) == 4  # 64 pixels, both operands pixel after pixel
    for instruction in ("4d.shared::cluster.global.im2col", "3d.global.shared::cta", "griddepcontrol.wait"):
        assert instruction in ptx


@pytest.mark.parametrize("layer", networks.compared(), ids=str)
def test_a_plan_keeps_every_multiprocessor_busy_at_most_once(layer):
    tile, splits = tiling(layer.convolution)
    blocks = splits * tile.count(layer.convolution)
    assert splits == 1 or blocks <= 132
    assert blocks >= 64  # enough where memory is the limit
    assert splits <= -(-layer.convolution.gemm[0] // 64)


def test_a_smaller_card_gets_a_plan_of_its_own(monkeypatch):
    conv = networks.compared()[0].convolution
    monkeypatch.setattr(hopper, "multiprocessors", lambda: 20)
    tile, splits = tiling(conv)
    assert splits == 1 or splits * tile.count(conv) <= 20


def test_few_pixels_are_not_split_further_than_into_stages():
    assert tiling(Convolution(1, 64, 8, 8, 64, 1, 1)).splits == 1
    assert tiling(Convolution(1, 64, 10, 10, 64, 1, 1)).splits <= 2


@pytest.mark.parametrize(
    ("conv", "layout", "dtype", "reason"),
    [
        (Convolution(1, 12, 8, 8, 8, 1, 1), "NHWC", np.float16, "C is 12"),
        (Convolution(1, 8, 8, 8, 20, 1, 1), "NHWC", np.float16, "K is 20"),
        (Convolution(1, 16, 8, 8, 16, 3, 3, groups=2), "NHWC", np.float16, "no groups"),
        (Convolution(1, 8, 32, 32, 8, 1, 1, stride=(9, 1)), "NHWC", np.float16, "stride"),
        (Convolution(1, 8, 8, 8, 8, 1, 1), "NCHW", np.float32, "takes float16 in NHWC"),
    ],
)
def test_what_it_refuses(conv, layout, dtype, reason):
    assert reason in STEP.refuses(conv, layout, dtype)


@pytest.mark.skipif(backend.name() == "gpu", reason="about the simulator")
def test_the_simulator_runs_it_but_auto_takes_another():
    assert STEP.missing() == ""
    assert not STEP.preferred(CASES["3x3"][0], np.float16)


ON_GPU = {
    **{name: conv for name, (conv, _) in CASES.items()},
    "one pixel": Convolution(1, 8, 1, 1, 8, 1, 1),
    "padding beyond the filter": Convolution(1, 8, 3, 3, 8, 2, 2, padding=(3, 2), stride=(2, 1)),
    "a stride that leaves pixels out": Convolution(3, 24, 31, 33, 40, 2, 2, stride=(3, 4)),
    "long filter": Convolution(2, 16, 12, 40, 24, 1, 9, padding=(0, 4)),
    "many splits": Convolution(8, 64, 57, 55, 64, 3, 3, padding=(1, 1)),
    "more tiles than multiprocessors": Convolution(2, 1032, 5, 5, 1096, 3, 3, padding=(1, 1)),
}


def check_on_gpu(conv, plans):
    """Every element, and the same again."""
    if lack := STEP.missing():
        pytest.skip(lack)
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    random = cp.random.default_rng(seed)
    x, dy = (
        (2 * random.random(shape("NHWC"), dtype=np.float32) - 1).astype(np.float16)
        for shape in (conv.x_shape, conv.y_shape)
    )
    exact = reference.backward_filter(cp.asnumpy(x), cp.asnumpy(dy), conv, "NHWC")
    for chosen in plans:
        results = [cp.full(conv.w_shape("NHWC"), np.nan, np.float16) for _ in range(2)]
        for dw in results:
            STEP.launch(x, dy, dw, conv, chosen=chosen)
        assert bool((results[0] == results[1]).all()), f"{chosen}: the result differs from run to run, or is NaN"
        check(cp.asnumpy(results[0]), exact, conv.gemm[0])


@pytest.mark.gpu
@pytest.mark.parametrize("conv", ON_GPU.values(), ids=ON_GPU)
def test_the_gradient_on_a_gpu(conv):
    check_on_gpu(conv, [None])


@pytest.mark.gpu
@pytest.mark.parametrize("conv", [ON_GPU["uneven"], Convolution(3, 136, 9, 9, 200, 1, 1)], ids=str)
def test_every_tile_on_a_gpu(conv):
    """Whole, and split as far as there are pixels for."""
    check_on_gpu(conv, [Tiling(tile, splits) for tile in TILES for splits in (1, -(-conv.gemm[0] // 64))])
