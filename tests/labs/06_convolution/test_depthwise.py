"""Depthwise convolution on the active backend: the three passes against float64, tiles, refusals, counters."""

import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pytest

from kernels.convolution import convolve, recordings
from kernels.convolution.beside import depthwise
from kernels.convolution.common.sources import SOURCES
from kernels.convolution.definition import networks, reference
from kernels.convolution.definition.geometry import Convolution
from tests.support.random_inputs import generator
from warplab import cards, cp, profile
from warplab.compile import nvrtc
from warplab.compile.disassembler import disassemble
from warplab.hardware import backend, occupancy

GUARD = 64  # elements before and after the result
LAYOUTS = {"float16": "NHWC", "float32": "NCHW"}
KINDS = ("forward", "backward_data", "backward_filter")


def conv(c, h, w, *, n=1, r=3, s=3, padding=(1, 1), stride=(1, 1), dilation=(1, 1)):
    return Convolution(n, c, h, w, c, r, s, padding, stride, dilation, groups=c)


CASES = {
    "one pixel": conv(8, 1, 1),
    "one channel": conv(1, 5, 6, n=2),
    "fewer than a tile": conv(16, 3, 2, n=3),
    "a tile and a bit": conv(64, 8, 9, n=2),
    "two chunks of channels": conv(72, 6, 5),
    "a chunk of 32 channels": conv(96, 5, 5),
    "odd channels": conv(7, 9, 4, n=2),
    "channels that pairs divide": conv(10, 9, 4),
    "stride 2": conv(24, 9, 10, n=2, stride=(2, 2)),
    "stride 2, even rows left over": conv(8, 8, 8, stride=(2, 2), padding=(0, 0)),
    "no padding": conv(16, 9, 5, padding=(0, 0)),
    "windows wholly in the padding": conv(4, 3, 4, padding=(4, 3)),
    "stride 2, windows wholly in the padding": conv(4, 3, 4, padding=(5, 4), stride=(2, 2)),
    "5 × 5": conv(12, 9, 8, r=5, s=5, padding=(2, 2)),
    "5 × 5, stride 2": conv(6, 11, 8, r=5, s=5, padding=(2, 2), stride=(2, 2)),
    "1 × 7": conv(12, 5, 9, r=1, s=7, padding=(0, 3)),
    "6 × 2, stride 2": conv(10, 9, 6, r=6, s=2, padding=(3, 0), stride=(2, 2)),
    "9 × 9": conv(40, 10, 9, n=2, r=9, s=9, padding=(4, 4)),
    "stride above the filter": conv(5, 11, 9, stride=(4, 4)),
    "strides that differ": conv(8, 9, 9, stride=(1, 2)),
    "dilation": conv(8, 9, 12, padding=(2, 3), dilation=(2, 3)),
    "dilation of few pixels": conv(12, 5, 4, n=2, r=5, s=2, padding=(5, 7), dilation=(3, 6)),
    "1 × 4 filter, stride and dilation": conv(3, 4, 13, r=1, s=4, padding=(0, 2), stride=(2, 3), dilation=(1, 2)),
}


def operands(case, kind, dtype):
    """The two inputs of a pass, from -1 to 1, and the shape of its result."""
    layout, random = LAYOUTS[dtype], generator()
    shapes = [shape(layout) for shape in (case.x_shape, case.w_shape, case.y_shape)]
    order = {"forward": (0, 1, 2), "backward_data": (2, 1, 0), "backward_filter": (0, 2, 1)}[kind]
    first, second, result = (shapes[i] for i in order)
    return (*(random.uniform(-1, 1, shape).astype(dtype) for shape in (first, second)), result)


def exact_and_size(case, kind, first, second, dtype):
    """The exact result, and the same of the inputs' absolute values."""
    function, layout = getattr(reference, kind), LAYOUTS[dtype]
    return function(first, second, case, layout), function(abs(first), abs(second), case, layout)


def within(found, exact, size, terms):
    """Is every element as near as float32 sums of so many terms make it, rounded once to the type of `found`?"""
    bound = (terms + 1) * 2.0**-24 * size
    if found.dtype == np.float16:
        bound = bound + 2.0**-11 * abs(exact) + 2.0**-24
    return bool((abs(found - exact) <= bound).all())


def terms(case, kind):
    return case.n * case.p * case.q if kind == "backward_filter" else case.r * case.s


def guarded(case, kind, first, second, result, dtype, offset=0, **more):
    """The pass's result, computed into poisoned memory between guard bands."""
    begin, count = GUARD + offset, math.prod(result)
    whole = cp.asarray(np.full(begin + count + GUARD, np.nan, dtype))
    out = whole[begin : begin + count].reshape(result)
    parameters = {name: getattr(case, name) for name in ("padding", "stride", "dilation", "groups")}
    arrays = [cp.asarray(first), cp.asarray(second)]
    if kind != "forward":
        arrays.append((case.x_shape if kind == "backward_data" else case.w_shape)(LAYOUTS[dtype]))
    function = getattr(convolve, kind)
    assert function(*arrays, **parameters, layout=LAYOUTS[dtype], step="depthwise", out=out, **more) is out
    found = cp.asnumpy(whole)
    assert np.isnan(found[:begin]).all(), "written before the result"
    assert np.isnan(found[begin + count :]).all(), "written past the result"
    return found[begin : begin + count].reshape(result)


# -- results -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_pass_is_the_references(kind, dtype, case):
    first, second, result = operands(case, kind, dtype)
    found = guarded(case, kind, first, second, result, dtype)
    assert within(found, *exact_and_size(case, kind, first, second, dtype), terms(case, kind))


@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("name", ["a tile and a bit", "dilation"])
def test_bias_and_relu_come_before_the_rounding(name, dtype):
    case = CASES[name]
    x, w, result = operands(case, "forward", dtype)
    bias = generator().uniform(-1, 1, case.c).astype(np.float32)
    along = bias.reshape((-1,) if dtype == "float16" else (-1, 1, 1)).astype(np.float64)
    exact, size = exact_and_size(case, "forward", x, w, dtype)
    for relu in (False, True):
        found = guarded(case, "forward", x, w, result, dtype, bias=cp.asarray(bias), relu=relu)
        wanted = np.maximum(exact + along, 0) if relu else exact + along
        assert within(found, wanted, size + abs(along), case.r * case.s + 1)
        assert relu == (not (found < 0).any())


@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("name", ["a tile and a bit", "dilation"])
def test_relu_keeps_what_is_not_a_number(name, dtype):
    case = CASES[name]
    x, w, result = operands(case, "forward", dtype)
    x.flat[x.size // 2] = np.nan
    exact, _ = exact_and_size(case, "forward", x, w, dtype)
    whole = cp.asarray(np.zeros(result, dtype))
    (step,) = depthwise.FORWARD
    step.launch(cp.asarray(x), cp.asarray(w), whole, case, None, True)
    found = np.isnan(cp.asnumpy(whole))
    np.testing.assert_array_equal(found, np.isnan(exact))
    assert 0 < found.sum() < found.size


# Biases that are results: what rounds to no number but 0 or an infinity in float16, too.
SPECIAL = (np.nan, -0.0, np.inf, -np.inf, 0.0, 1.5, -1.5, 1e-9, -1e-9, 65520, -65520)
BITS = {"float16": (np.uint16, 0x7FFF), "float32": (np.uint32, 0x7FFFFFFF)}  # and those of the one NaN that comes out


# Arrays that begin where vectors do, and two and four bytes further on.
STARTS = [(dtype, name, 0) for dtype in LAYOUTS for name in CASES]
STARTS += [("float16", name, offset) for name in ("a tile and a bit", "stride 2") for offset in (1, 2)]


@pytest.mark.parametrize("relu", [False, True], ids=["", "relu"])
@pytest.mark.parametrize(("dtype", "name", "offset"), STARTS)
def test_nan_infinities_and_the_sign_of_0(dtype, name, offset, relu):
    """Filters of -0 leave the bias as it is, -0 too. ReLU keeps NaN, and makes -0 to +0."""
    case = CASES[name]
    x, w = (np.full(shape(LAYOUTS[dtype]), value, dtype) for shape, value in ((case.x_shape, 1), (case.w_shape, -0.0)))
    shape = case.y_shape(LAYOUTS[dtype])
    unsigned, nan = BITS[dtype]
    for first in range(0, len(SPECIAL), case.c):
        bias = np.float32(SPECIAL)[(first + np.arange(case.c)) % len(SPECIAL)]
        found = guarded(case, "forward", x, w, shape, dtype, offset, bias=cp.asarray(bias), relu=relu).copy()
        with np.errstate(over="ignore"):
            wanted = (np.where(bias <= 0, np.float32(0), bias) if relu else bias).astype(dtype).view(unsigned)
        wanted = np.where(np.isnan(bias), unsigned(nan), wanted)
        along = wanted.reshape((-1,) if dtype == "float16" else (-1, 1, 1))
        np.testing.assert_array_equal(found.view(unsigned), np.broadcast_to(along, shape))


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_start_anywhere(kind):
    """Two bytes past a multiple of 16, vectors do not fit: single elements are loaded."""
    case = CASES["a tile and a bit"]
    first, second, result = operands(case, kind, "float16")
    found = guarded(case, kind, first, second, result, "float16", offset=1)
    assert within(found, *exact_and_size(case, kind, first, second, "float16"), terms(case, kind))


@pytest.mark.parametrize("dtype", LAYOUTS)
def test_more_tiles_than_blocks_and_the_same_sums_in_every_run(dtype, monkeypatch):
    """Blocks of backward_filter that take several tiles."""
    monkeypatch.setattr(depthwise, "MOST_PARTIAL", 3)
    case = conv(33, 23, 19, n=3)
    x, dy, result = operands(case, "backward_filter", dtype)
    first, again = (guarded(case, "backward_filter", x, dy, result, dtype) for _ in range(2))
    assert within(first, *exact_and_size(case, "backward_filter", x, dy, dtype), terms(case, "backward_filter"))
    np.testing.assert_array_equal(first, again)


def test_auto_takes_depthwise_where_it_is_one():
    case = CASES["a tile and a bit"]
    x, w, _ = operands(case, "forward", "float16")
    with profile() as p:
        convolve.forward(cp.asarray(x), cp.asarray(w), padding=1, groups=64, layout="NHWC")
    assert [launch.kernel.partition("<")[0] for launch in p] == ["depthwise_forward"]


# -- what is refused, and which kernel is taken ------------------------------------------------------------------------


def test_what_is_no_depthwise_convolution_is_refused():
    x = cp.zeros((1, 4, 4, 8), np.float16)
    for w, groups in ((cp.zeros((8, 3, 3, 8), np.float16), 1), (cp.zeros((16, 3, 3, 1), np.float16), 8)):
        with pytest.raises(ValueError, match=r"depthwise takes as many groups and filters as channels, and not"):
            convolve.forward(x, w, groups=groups, layout="NHWC", step="depthwise")
    with pytest.raises(ValueError, match="depthwise takes float16 in NHWC or float32 in NCHW, and not float16 in NCHW"):
        convolve.forward(x, cp.zeros((4, 1, 3, 3), np.float16), groups=4, step="depthwise")


@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_mobilenets_layers_get_a_fast_kernel_in_whole_vectors(kind, dtype):
    for layer in networks.mobilenet():
        found = depthwise.tile(layer.convolution, kind, dtype)
        assert found is not None
        assert found.vec == depthwise.TILES[kind, dtype, layer.convolution.stride[0]].vec
        assert layer.convolution.c % found.channels == 0


def test_the_tile_follows_from_channels_address_and_filter():
    fast = CASES["a tile and a bit"]
    assert depthwise.tile(fast, "forward", "float16", 2).vec == 1
    assert depthwise.tile(fast, "forward", "float16", 4).vec == 2
    assert depthwise.tile(conv(10, 9, 9), "forward", "float16").vec == 2
    assert depthwise.tile(CASES["a chunk of 32 channels"], "forward", "float16").channels == 32
    assert depthwise.tile(CASES["5 × 5"], "forward", "float16").vec <= 2
    for name in ("strides that differ", "stride above the filter", "1 × 4 filter, stride and dilation"):
        assert depthwise.tile(CASES[name], "forward", "float16") is None


@pytest.mark.parametrize("dtype", LAYOUTS)
def test_the_workspace_holds_the_partial_sums(dtype):
    (step,) = depthwise.BACKWARD_FILTER
    for case in [*CASES.values(), *(layer.convolution for layer in networks.mobilenet())]:
        for address in (0, 2, 4, 8):
            found = depthwise.tile(case, "backward_filter", dtype, address)
            _, blocks = depthwise.partial_blocks(case, dtype, found)
            assert 4 * blocks * case.c * case.r * case.s <= step.workspace_bytes(case, dtype)


def test_mobilenets_layers():
    layers = networks.mobilenet()
    assert sum(layer.count for layer in layers) == 13
    for layer, following in itertools.pairwise(layers):
        assert following.convolution.h == layer.convolution.p
    assert str(layers[1].convolution).startswith("32 × 64 × 112², 3 × 3, 64 filters, padding 1, stride 2")


def test_the_header_says_what_was_recorded():
    passes = json.loads(recordings.path.read_text())["depthwise"]["value"]
    header = " ".join(SOURCES.text(depthwise.FILE).partition("#include")[0].replace("//", "").split())
    for name, found in passes.items():
        what = "FP32 forward" if name == "forward_float32" else name
        assert f"{what} {found['geometric_mean']:.2f} and {found['least']:.2f}" in header


# -- machine code ------------------------------------------------------------------------------------------------------

# Instructions and registers of the forward kernels of MobileNet's layers in the version of 2026-11-22 whose ReLU was
# fmaxf, and in the one that was timed on 2026-11-23.
FORMER = {
    ("float16", 1): ((1831, 128), (1892, 133)),
    ("float16", 2): ((954, 164), (1001, 166)),
    ("float32", 1): ((350, 40), (349, 40)),
    ("float32", 2): ((420, 48), (434, 48)),
}


@pytest.fixture(scope="module")
def forward_in_machine_code():
    """By type and stride: instructions and resources on an H100."""
    entries = {
        key: depthwise._entry(
            "forward", conv(64, 14, 14, stride=(key[1], key[1])), key[0], depthwise.TILES["forward", *key]
        )
        for key in FORMER
    }
    text, options = SOURCES.text(depthwise.FILE), SOURCES.options(depthwise.FILE)
    report, cubin, names = nvrtc.assemble_cuda(text, depthwise.FILE, 90, options, tuple(entries.values()))
    parts = report.split("Compiling entry function")
    found = {}
    for key, entry in entries.items():
        (part,) = (part for part in parts if f"'{names[entry]}'" in part)
        assert "0 bytes spill stores" in part
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        found[key] = disassemble(cubin, names[entry]), registers
    return found


@pytest.mark.parametrize("key", FORMER, ids=str)
def test_relu_is_a_bound_and_no_test(forward_in_machine_code, key):
    instructions, _ = forward_in_machine_code[key]
    opcodes = Counter(row.opcode for row in instructions)
    chosen = depthwise.TILES["forward", *key]
    results = chosen.rows * chosen.wide * chosen.vec
    greater = {"HMNMX2.NAN": results // 2} if key[0] == "float16" else {"FMNMX.NAN": results}
    assert {name: n for name, n in opcodes.items() if "MNMX" in name and name[0] in "FH"} == greater
    assert not [row for row in instructions if "MNMX" in row.opcode and row.opcode[0] in "FH" and row.predicate]


@pytest.mark.parametrize("key", FORMER, ids=str)
def test_a_relu_that_keeps_nan_takes_no_more_than_fmaxf(forward_in_machine_code, key):
    instructions, registers = forward_in_machine_code[key]
    before, _ = FORMER[key]
    assert len(instructions) <= before[0]
    assert registers <= before[1]


def test_as_many_blocks_on_a_multiprocessor_as_with_fmaxf(forward_in_machine_code):
    for key, (with_fmaxf, _) in FORMER.items():
        _, registers = forward_in_machine_code[key]
        now, before = (
            occupancy.theoretical(cards.card("H100"), depthwise.BLOCK, registers=n).blocks
            for n in (registers, with_fmaxf[1])
        )
        assert now >= before


def test_the_header_has_the_machine_code(forward_in_machine_code):
    header = " ".join(SOURCES.text(depthwise.FILE).partition("#include")[0].replace("//", "").split())
    for (dtype, stride), (instructions, registers) in forward_in_machine_code.items():
        columns = *FORMER[dtype, stride], (len(instructions), registers)
        row = " ".join(f"{count}, {used}" for count, used in columns)
        assert f"{dtype.replace('float', 'FP')}, stride {stride} {row}" in header


# -- counters ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted():
    """Counters of the forward pass of 1 × 64 × 28², stride 1, by the fast kernel and by the one for anything."""
    if backend.name() != "simulator":
        pytest.skip("the simulator counts")
    case = conv(64, 28, 28)
    x, w, result = operands(case, "forward", "float16")
    found = {}
    for name, chosen in (("fast", depthwise.tile(case, "forward", np.float16)), ("any", None)):
        arrays = cp.asarray(x), cp.asarray(w), None, cp.asarray(np.full(result, np.nan, np.float16))
        queued = depthwise.queued(case, "forward", np.float16, arrays, chosen, depthwise.least(False))
        with profile() as p:
            queued.launch()
        found[name] = p[0].counts
    return case, found


def test_a_thread_loads_what_its_tile_needs_and_no_more(counted):
    case, found = counted
    tile = depthwise.tile(case, "forward", np.float16)
    rows, columns = (
        sum(
            min(start + size + 1, extent) - max(start - 1, 0)  # with the window's borders, inside the image
            for start in range(0, extent, size)
        )
        for size, extent in ((tile.rows, case.h), (tile.wide, case.w))
    )
    sectors_of_x = rows * columns * case.c * 2 // 32
    blocks = math.ceil(depthwise._tiles(case, "forward", tile) / (128 * tile.vec // tile.channels))
    sectors_of_w = blocks * case.c * 9 * 2 // 32
    assert found["fast"].global_load_sectors == sectors_of_x + sectors_of_w
    assert found["any"].global_load_sectors > 3 * found["fast"].global_load_sectors


def test_every_sector_is_whole_and_shared_memory_has_no_conflicts(counted):
    case, found = counted
    fast = found["fast"]
    assert fast.load_efficiency == fast.store_efficiency == 1
    assert fast.global_store_sectors == case.h * case.w * case.c * 2 // 32
    assert fast.shared_load_conflicts == fast.shared_store_conflicts == 0


def test_as_many_multiply_adds_as_the_definition_has(counted):
    """Padding's zeros are multiplied, too: 28 is a multiple of the tile."""
    case, found = counted
    assert found["fast"].flops_f32 == case.flops
