"""Step 5 and the gradient of x on Hopper: what the kernel compiles to, what it computes in the simulator, which sizes
it takes, and what it refuses."""

import os
import re
from dataclasses import astuple

import numpy as np
import pytest

from kernels.convolution import convolve, ladder, recordings
from kernels.convolution.definition import networks, reference
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.hopper import autotune, tile_sizes, wgmma_im2col
from kernels.convolution.hopper.backward_data import BACKWARD_DATA
from kernels.convolution.hopper.forward import FORWARD
from kernels.convolution.hopper.tile_sizes import CANDIDATES, DEEP, DEPTH, Im2colTiles
from warpcourse.bench import hopper
from warpcourse.bench.hopper import Pixels
from warplab import cp, simulator
from warplab.compile import nvrtc
from warplab.hardware import backend

(STEP,), (GRADIENT,) = FORWARD, BACKWARD_DATA
SMALL, TWO_GROUPS, TALL = (
    Im2colTiles(64, 64, 1, 2, 1),
    Im2colTiles(128, 128, 2, 2, 1, 1, 1),
    Im2colTiles(128, 64, 1, 3, 1),
)


@pytest.fixture
def in_simulator(monkeypatch):
    """Launches run in the simulator, on two multiprocessors, so that blocks take several tiles."""
    if backend.name() == "gpu":
        pytest.skip("the tests on a GPU run other sizes there")
    monkeypatch.setattr(hopper, "multiprocessors", lambda: 2)


def half(random, shape):
    return random.uniform(-1, 1, shape).astype(np.float16)


def check(found, exact, depth):
    """One rounding to float16, and float32 sums of so many products of at most 1."""
    bound = 2.0**-11 * np.abs(exact) + 2.0**-20 * depth + 2.0**-24
    wrong = ~(np.abs(found - exact) <= bound)
    first = tuple(np.argwhere(wrong)[0]) if wrong.any() else None
    assert first is None, (
        f"{wrong.sum()} of {wrong.size} are wrong, the first at {first}: {found[first]}, not {exact[first]}"
    )


CASES = {
    "1x1": (Convolution(1, 8, 9, 20, 72, 1, 1), SMALL),
    "1x1, stride 2": (Convolution(2, 72, 7, 6, 8, 1, 1, stride=(2, 2)), SMALL),
    "3x3": (Convolution(1, 8, 9, 8, 16, 3, 3, padding=(1, 1)), TALL),
    "3x3, stride 2": (Convolution(1, 8, 9, 8, 8, 3, 3, padding=(1, 1), stride=(2, 2)), SMALL),
    "padding 2, dilation 2": (Convolution(1, 8, 7, 7, 8, 3, 3, padding=(2, 2), dilation=(2, 2)), SMALL),
    "uneven": (Convolution(1, 8, 9, 10, 8, 2, 3, padding=(0, 2), stride=(3, 1), dilation=(1, 3)), SMALL),
    "padding beyond the filter": (Convolution(1, 8, 3, 3, 8, 2, 2, padding=(3, 2), stride=(2, 1)), SMALL),
    "several groups of chunks": (Convolution(1, 136, 5, 5, 136, 2, 1), SMALL),
    "a cluster of four": (
        Convolution(1, 136, 7, 7, 264, 3, 3, padding=(1, 1), stride=(2, 2)),
        Im2colTiles(128, 128, 2, 3, 1, split=2, beside=2),
    ),
    "a depth shared in global memory": (
        Convolution(1, 72, 4, 5, 24, 3, 2, padding=(1, 0)),
        Im2colTiles(64, 64, 1, 2, 1, deep=4),
    ),
    "two warpgroups": (Convolution(1, 72, 9, 9, 136, 1, 1), TWO_GROUPS),
}


@pytest.mark.parametrize(("conv", "tiles"), CASES.values(), ids=CASES)
def test_forward_in_the_simulator(in_simulator, conv, tiles):
    random = np.random.default_rng(conv.depth)
    x, w = half(random, conv.x_shape("NHWC")), half(random, conv.w_shape("NHWC"))
    bias = random.uniform(-1, 1, conv.k).astype(np.float32)
    y = cp.asarray(np.full(conv.y_shape("NHWC"), np.nan, np.float16))
    STEP.launch(cp.asarray(x), cp.asarray(w), y, conv, cp.asarray(bias), True, tiles=tiles)
    check(cp.asnumpy(y), np.maximum(reference.forward(x, w, conv, "NHWC") + bias, 0), conv.depth)


def test_the_lessons_call_runs_without_a_gpu():
    """With the simulator's own tensor maps and no stand-in, as `convolve.forward` launches it."""
    random, conv = np.random.default_rng(5), Convolution(1, 64, 8, 8, 64, 3, 3, padding=(1, 1))
    x, w = half(random, conv.x_shape("NHWC")), half(random, conv.w_shape("NHWC"))
    y = convolve.forward(cp.asarray(x), cp.asarray(w), padding=1, layout="NHWC", step="wgmma_im2col")
    check(cp.asnumpy(y), reference.forward(x, w, conv, "NHWC"), conv.depth)


def check_relu_of_what_is_not_a_number():
    conv = Convolution(1, 8, 5, 5, 8, 3, 3, padding=(1, 1))
    x, w = np.ones(conv.x_shape("NHWC"), np.float16), -np.ones(conv.w_shape("NHWC"), np.float16)
    x[0, 0, 0, 3] = np.nan
    y = cp.asarray(np.ones(conv.y_shape("NHWC"), np.float16))
    STEP.launch(cp.asarray(x), cp.asarray(w), y, conv, None, True, tiles=SMALL)
    np.testing.assert_array_equal(cp.asnumpy(y), np.where(np.isnan(reference.forward(x, w, conv, "NHWC")), np.nan, 0))


def test_relu_keeps_what_is_not_a_number(in_simulator):
    check_relu_of_what_is_not_a_number()


@pytest.mark.parametrize(("conv", "tiles"), CASES.values(), ids=CASES)
def test_the_gradient_of_x_in_the_simulator(in_simulator, conv, tiles):
    random = np.random.default_rng(conv.depth)
    dy, w = half(random, conv.y_shape("NHWC")), half(random, conv.w_shape("NHWC"))
    dx = cp.asarray(np.full(conv.x_shape("NHWC"), np.nan, np.float16))
    GRADIENT.launch(cp.asarray(dy), cp.asarray(w), dx, conv, tiles=tiles)
    check(cp.asnumpy(dx), reference.backward_data(dy, w, conv, "NHWC"), conv.k * conv.r * conv.s)


def test_consumers_that_do_not_wait_for_all_bytes_are_noticed(in_simulator, monkeypatch, tmp_path):
    text = wgmma_im2col.FILE.read_text(encoding="utf-8")
    wrong = text.replace("barrier_expect(barrier, STAGE_BYTES)", "barrier_expect(barrier, STAGE_BYTES - W_BYTES)")
    assert wrong != text
    (tmp_path / wgmma_im2col.FILE.name).write_text(wrong, encoding="utf-8")
    monkeypatch.setattr(wgmma_im2col, "FILE", tmp_path / wgmma_im2col.FILE.name)
    conv = Convolution(1, 8, 4, 4, 8, 1, 1)
    x, w, y = (cp.zeros(shape("NHWC"), np.float16) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    with pytest.raises(simulator.DataRace, match=r"reads byte .* of shared memory .* and nothing orders the two"):
        STEP.launch(x, w, y, conv, tiles=SMALL)


def options(tiles, parts=1, **flags):
    given = {"PARTS": parts, "FLAT": 0, "GRADIENT": 0, "BIAS": 0, "RELU": 0} | flags
    return *hopper.include(), *tiles.options, *(f"-D{name}={value}" for name, value in given.items())


@pytest.mark.parametrize("tiles", CANDIDATES, ids=lambda tiles: "-".join(map(str, astuple(tiles))))
def test_machine_code_for_hopper_is_as_it_must_be(tiles):
    text, name = wgmma_im2col.FILE.read_text(encoding="utf-8"), wgmma_im2col.FILE.name
    for flags in ({"BIAS": 1, "RELU": 1}, {"GRADIENT": 1, "parts": 4}, {"GRADIENT": 1, "BK": 32, "parts": 32}):
        log, *_ = nvrtc.assemble_cuda(text, name, "90a", options(tiles, **flags))
        assert log.count("0 bytes spill stores") == 2  # the second adds what is deep
        # ptxas warns (C75xx) when it must wait for each wgmma.
        assert not re.search(r"warning|C75\d\d|Potential Performance", log), log
        registers = max(map(int, re.findall(r"Used (\d+) registers", log)))
        assert registers * tiles.threads * tiles.blocks <= 65536


def test_the_instructions_of_hopper_are_there():
    text = wgmma_im2col.FILE.read_text(encoding="utf-8")

    def ptx(tiles, **flags):
        return nvrtc.compile_cuda(text, options=("-arch=sm_90a", *options(tiles, **flags)))

    forward, gradient = ptx(Im2colTiles(128, 256, 2, 4, 1)), ptx(Im2colTiles(128, 256, 2, 4, 1), GRADIENT=1)
    for found, majors in ((forward, "0, 0"), (gradient, "0, 1")):
        products = rf"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 .*?, 1, 1, {majors};"
        assert len(re.findall(products, found, re.DOTALL)) == 4  # 64 channels
        assert "4d.shared::cluster.global.im2col" in found
    assert "2d.global.shared::cta" in forward
    assert "4d.global.shared::cta.im2col_no_offs" in gradient
    assert "multicast" not in forward
    assert "global.im2col" not in ptx(Im2colTiles(128, 256, 2, 4, 1), FLAT=1)
    shared = ptx(Im2colTiles(128, 128, 2, 5, 1, beside=2))
    assert "im2col.mbarrier::complete_tx::bytes.multicast::cluster" in shared
    assert "st.shared::cluster.v4.f32" in ptx(Im2colTiles(128, 128, 2, 5, 1, 2))


AXES = [
    (size, taps, padding, stride, dilation)
    for size in (1, 2, 5, 8)
    for taps in (1, 2, 3)
    for padding in (0, 1, 3)
    for stride in (1, 2, 3)
    for dilation in (1, 2, 3)
    if size + 2 * padding >= dilation * (taps - 1) + 1
]


def test_phases_of_the_gradient_pair_each_element_with_the_right_taps():
    """Of all pairs of an element of dx and a tap, those whose windows exist, each once."""
    for size, taps, padding, stride, dilation in AXES:
        outputs = (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1
        wanted = {
            (h, r, (h + padding - r * dilation) // stride)
            for h in range(size)
            for r in range(taps)
            if (h + padding - r * dilation) % stride == 0 and 0 <= (h + padding - r * dilation) // stride < outputs
        }
        found = []
        for phase in range(min(stride, size)):
            axis = wgmma_im2col.gradient_axis(phase, size, taps, padding, stride, dilation)
            for i in range(axis.count):
                for tap in range(axis.taps):
                    p = axis.first + i * axis.step + tap * axis.dilation
                    if 0 <= p < outputs:
                        found.append((phase + i * stride, axis.first_tap + tap * axis.next_tap, p))
        assert len(found) == len(set(found))
        assert set(found) == wanted, (size, taps, padding, stride, dilation)


def test_phases_of_a_stride_cover_the_image():
    conv = Convolution(1, 8, 9, 8, 8, 3, 3, padding=(1, 1), stride=(2, 2))
    phases = wgmma_im2col.gradient_phases(conv)
    assert [phase.height.taps * phase.width.taps for phase in phases] == [4, 2, 2, 1]
    assert sum(phase.height.count * phase.width.count for phase in phases) == 9 * 8
    (only,) = wgmma_im2col.gradient_phases(Convolution(1, 8, 9, 8, 8, 3, 3, padding=(1, 1)))
    assert (only.height.first, only.height.taps, only.height.first_tap, only.height.next_tap) == (-1, 3, 2, -1)


PIXELS = {
    "address": 4096,
    "dtype": "float16",
    "shape": (2, 9, 7, 24),
    "strides": (9 * 7 * 48, 7 * 48, 48),
    "first": (-1, -2),
    "positions": (9, 4),
    "steps": (1, 2),
    "lines": 128,
}


def test_the_corners_of_a_window():
    """As cuTensorMapEncodeIm2col counts: of the last pixel it visits, from the image's last."""
    assert Pixels(**PIXELS).beyond == (-1, -2)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"dtype": "int8"}, "dtype must be"),
        ({"address": 8}, "address must be a multiple of 16"),
        ({"strides": (3024, 336, 40)}, "strides must be multiples of 16 bytes"),
        ({"positions": (0, 4)}, "positions must be at least 1"),
        ({"steps": (1, 9)}, "steps must be 1 to 8"),
        ({"lines": 257}, "lines must be 1 to 256"),
        ({"first": (-129, 0)}, "corners of the window must be -128 to 127"),
        ({"positions": (200, 4)}, "corners of the window must be -128 to 127"),
    ],
)
def test_windows_that_tma_cannot_walk_are_refused(changed, rule):
    with pytest.raises(ValueError, match=rule):
        Pixels(**PIXELS | changed)


@pytest.mark.parametrize(
    ("sizes", "rule"),
    [
        ((96, 64, 1, 4, 1), "bm must be a multiple of 64"),
        ((320, 64, 1, 2, 1), "bm must be 256 at most"),
        ((64, 192, 1, 4, 1), "bn must be 16, 32, 64, 128 or 256"),
        ((128, 256, 1, 2, 1), "64 × 256 sums at most"),
        ((128, 128, 2, 5, 1, 4), "split must divide bn / 64"),
        ((64, 128, 1, 4, 1, 1, 2, 3), "bm must be a multiple of 8 for each block"),
        ((64, 256, 1, 4, 1, 4, 2, 4), "a cluster has 8 blocks at most"),
        ((128, 128, 2, 5, 1, 2, 2, 1, 2), "either split or deep must be 1"),
        ((64, 64, 1, 1, 1), "stages must be at least 2"),
        ((128, 128, 2, 3, 2), "2 blocks need 264192 bytes of shared memory"),
        ((64, 64, 1, 0, 1), "all sizes must be at least 1"),
    ],
)
def test_sizes_that_make_no_kernel_are_refused(sizes, rule):
    with pytest.raises(ValueError, match=re.escape(rule)):
        Im2colTiles(*sizes)


@pytest.mark.parametrize("of", ["forward", "backward_data"])
def test_each_layer_has_sizes(of):
    for layer in networks.compared():
        pixels, channels, depth = tile_sizes.gemm(layer.convolution, of)
        sizes = tile_sizes.chosen(layer.convolution, of)
        assert sizes.bn <= max(64, channels)
        assert sizes in CANDIDATES, "tiles.json is of other candidates: run the autotuner"
        clocks = [tile_sizes.clocks(tiles, pixels, channels, depth) for tiles in CANDIDATES]
        assert tile_sizes.clocks(tile_sizes.by_arithmetic(pixels, channels, depth), *(pixels, channels, depth)) == (
            min(clocks)
        )


def test_the_autotuner_needs_a_gpu(capsys):
    with pytest.raises(SystemExit) as end:
        autotune.AUTOTUNER.main(["forward"])
    assert end.value.code == 2
    assert "The autotuner needs an NVIDIA GPU" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        autotune.AUTOTUNER.main(["backward_filter"])
    assert "there is nothing to tune in backward_filter" in capsys.readouterr().err


REFUSED = [
    (Convolution(1, 12, 8, 8, 8, 1, 1), "NHWC", np.float16, "copies 8 channels at a time, and C is 12"),
    (Convolution(1, 8, 8, 8, 20, 1, 1), "NHWC", np.float16, "and K is 20"),
    (Convolution(1, 16, 8, 8, 16, 3, 3, groups=2), "NHWC", np.float16, "takes no groups, and here are 2"),
    (Convolution(1, 8, 8, 8, 8, 1, 1), "NCHW", np.float32, "takes float16 in NHWC"),
    (Convolution(1, 8, 8, 8, 8, 3, 3, padding=(130, 1)), "NHWC", np.float16, "reaches 128 pixels beyond an image"),
]


@pytest.mark.parametrize(("conv", "layout", "dtype", "reason"), REFUSED)
def test_what_it_refuses(conv, layout, dtype, reason):
    for step, table in ((STEP, ladder.FORWARD), (GRADIENT, ladder.BACKWARD_DATA)):
        said = step.refuses(conv, layout, dtype)
        assert reason in said
        instead = re.search(r"take (\w+)$", said)
        assert instead is None or instead.group(1) in table


def test_a_long_stride_is_refused_forward_only():
    conv = Convolution(1, 8, 32, 32, 8, 3, 3, stride=(9, 1))
    assert "steps 8 pixels at most" in STEP.refuses(conv, "NHWC", np.float16)
    assert GRADIENT.refuses(conv, "NHWC", np.float16) == ""


@pytest.mark.skipif(backend.name() == "gpu", reason="about the simulator")
def test_the_simulator_runs_them_but_auto_takes_others():
    for step, table in ((STEP, "forward"), (GRADIENT, "backward_data")):
        assert step.missing() == ""
        assert ladder.fastest(CASES["3x3"][0], "NHWC", np.float16, table).name != step.name


class TestRecorded:
    """What the header of the kernel says it reaches."""

    def test_the_header_gives_the_recorded_ratios(self):
        values = recordings.values()
        lines = [line.strip() for line in wgmma_im2col.FILE.read_text(encoding="utf-8").splitlines()]
        text = " ".join(line[2:].strip() for line in lines if line.startswith("//"))
        forward, fused, gradient = (values[key] for key in ("forward", "fused", "backward_data"))
        microseconds = {row["layer"]: row["seconds"] * 1e6 for row in forward["rows"]}
        first, second = microseconds["conv2_x 1×1, 64 → 256, 56²"], microseconds["conv3_x 3×3, 128 → 128, 28²"]
        ratios = [f"{key[kind]:.2f}" for key in (forward, fused, gradient) for kind in ("geometric_mean", "least")]
        assert f"Reached: {first:.1f} and {second:.1f} µs." in text
        assert f"{ratios[0]} of the speed of cuDNN's fastest plans, the geometric mean, and {ratios[1]} at" in text
        assert f"with bias and ReLU {ratios[2]} and {ratios[3]}, in {fused['cost_of_fusion']:.2f} of the time" in text
        assert f"the gradient of x {ratios[4]} and {ratios[5]} (" in text

    def test_the_goals_are_reached(self):
        values = recordings.values()
        for key, mean, least in (("forward", 0.90, 0.60), ("fused", 0.90, 0.60), ("backward_data", 0.70, 0.60)):
            assert values[key]["geometric_mean"] >= mean
            assert values[key]["least"] >= least
            assert all(row["correct"] for row in values[key]["rows"])
            assert {row["step"] for row in values[key]["rows"]} <= {STEP.name, GRADIENT.name}


ON_GPU = {
    **{name: conv for name, (conv, _) in CASES.items()},
    "one pixel": Convolution(1, 8, 1, 1, 8, 1, 1),
    "5x5": Convolution(2, 64, 20, 19, 72, 5, 5, padding=(2, 2), stride=(2, 2)),
    "nine phases, some empty": Convolution(2, 24, 31, 33, 40, 2, 2, stride=(3, 4)),
    "long filter": Convolution(2, 16, 12, 40, 24, 1, 9, padding=(0, 4), dilation=(1, 2)),
    "more tiles than multiprocessors": Convolution(9, 136, 57, 55, 264, 3, 3, padding=(1, 1)),
    "deep": Convolution(3, 1032, 9, 7, 520, 3, 3, padding=(1, 1)),
}


def check_on_gpu(conv, choices):
    """Every element of y, with and without bias and ReLU, and of dx, into poisoned memory between guard bands."""
    if lack := STEP.missing():
        pytest.skip(lack)
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    x, w, dy = (half(random, shape("NHWC")) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    bias = random.uniform(-1, 1, conv.k).astype(np.float32)
    y, dx = reference.forward(x, w, conv, "NHWC"), reference.backward_data(dy, w, conv, "NHWC")
    on_gpu = {name: cp.asarray(array) for name, array in (("x", x), ("w", w), ("dy", dy), ("bias", bias))}

    def forward(out, tiles, *after):
        STEP.launch(on_gpu["x"], on_gpu["w"], out, conv, *after, tiles=tiles)

    def fused(out, tiles):
        forward(out, tiles, on_gpu["bias"], True)

    def gradient(out, tiles):
        GRADIENT.launch(on_gpu["dy"], on_gpu["w"], out, conv, tiles=tiles)

    passes = (
        (forward, y, conv.depth),
        (fused, np.maximum(y + bias, 0), conv.depth),
        (gradient, dx, conv.k * conv.r * conv.s),
    )
    for tiles in choices:
        # The gradient's filters come side by side, 64 at a time; narrower tiles are the forward pass's.
        for launch, exact, depth in passes[: 2 if tiles and tiles.bn < DEPTH else 3]:
            guarded = cp.full(exact.size + 256, np.nan, np.float16)
            launch(guarded[128:-128].reshape(exact.shape), tiles)
            found = cp.asnumpy(guarded)
            assert np.isnan(found[:128]).all(), f"{tiles} writes before the result"
            assert np.isnan(found[-128:]).all(), f"{tiles} writes behind the result"
            check(found[128:-128].reshape(exact.shape), exact, depth)


@pytest.mark.gpu
def test_relu_keeps_what_is_not_a_number_on_a_gpu():
    check_relu_of_what_is_not_a_number()


@pytest.mark.gpu
@pytest.mark.parametrize("conv", ON_GPU.values(), ids=ON_GPU)
def test_both_passes_on_a_gpu(conv):
    check_on_gpu(conv, [None, SMALL])


@pytest.mark.gpu
def test_depths_shared_in_global_memory_on_a_gpu():
    check_on_gpu(ON_GPU["deep"], DEEP[::2])


@pytest.mark.gpu
@pytest.mark.parametrize(
    "conv", [ON_GPU["uneven"], Convolution(5, 136, 13, 11, 264, 3, 3, (1, 1), (2, 2)), ON_GPU["1x1, stride 2"]], ids=str
)
def test_all_candidates_on_a_gpu(conv):
    check_on_gpu(conv, CANDIDATES)
