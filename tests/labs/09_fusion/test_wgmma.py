"""cbr_wgmma.cu through its tactics: windows, tiles, shared depths, slices and residuals, against the interpreter."""

import re

import pytest

from kernels.fusion import tactics
from kernels.fusion.graph import Slice
from kernels.fusion.tactics import wgmma_tactics
from kernels.fusion.tactics.layer import layers
from warpcourse.bench import hopper
from warplab.hardware import backend

from .test_tactics import assert_near, cbr, filters_size, one_node_graph, run, tensor

pytestmark = pytest.mark.skipif(bool(hopper.missing("wgmma", "")), reason="a GPU without wgmma")
CASES = {
    "1x1": ({"c": 72, "k": 40, "h": 9, "w": 8, "r": 1}, "wgmma_64x64_by_3"),
    "1x1, stride 2": ({"c": 16, "k": 136, "h": 7, "w": 6, "r": 1, "stride": (2, 2)}, "wgmma_64x128_by_2"),
    "3x3": ({"c": 24, "k": 72, "h": 9, "w": 9, "r": 3, "padding": (1, 1, 1, 1)}, "wgmma_128x64_by_2"),
    "3x3, stride 2": (
        {"c": 64, "k": 8, "h": 9, "w": 8, "r": 3, "padding": (1, 1, 1, 1), "stride": (2, 2)},
        "wgmma_192x64_by_1",
    ),
    "uneven": (
        {"c": 8, "k": 16, "h": 9, "w": 11, "r": 2, "padding": (0, 2, 1, 1), "stride": (3, 1), "dilation": (1, 3)},
        "wgmma_256x64_by_1",
    ),
    "a depth shared by two": ({"c": 40, "k": 40, "h": 5, "w": 5, "r": 3, "padding": (1, 1, 1, 1)}, "wgmma_64x32_in_2"),
    "a depth shared by eight": ({"c": 136, "k": 72, "h": 6, "w": 6, "r": 2}, "wgmma_64x64_in_8"),
    "a depth shared by two warpgroups": ({"c": 256, "k": 136, "h": 9, "w": 8, "r": 1}, "wgmma_128x128_in_4"),
}


@pytest.fixture(autouse=True)
def on_two_multiprocessors(monkeypatch):
    """In the simulator, so that blocks take several tiles."""
    if backend.name() != "gpu":
        monkeypatch.setattr(hopper, "multiprocessors", lambda: 2)


def check(name, node, tensors, values):
    found, expected, graph = run(tactics.find(name), node, tensors, 2, values)
    assert_near(found, expected, graph, 2.0**-20 * filters_size(node))
    return found


def refusal(name, node, tensors, batch=2):
    (layer,) = layers(one_node_graph(node, tensors), batch)
    return tactics.find(name).refuses(layer)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("case", "name"), CASES.values(), ids=CASES)
def test_windows_tiles_and_residuals(case, name, residual):
    check(name, *cbr(case, "float16", "NHWC", residual=residual))


INT8_CASES = {
    "1x1": ({"c": 48, "k": 80, "h": 9, "w": 8, "r": 1}, "wgmma_64x64_by_3"),
    "3x3, stride 2": (
        {"c": 32, "k": 144, "h": 9, "w": 9, "r": 3, "padding": (1, 1, 1, 1), "stride": (2, 2)},
        "wgmma_128x128_by_2",
    ),
    "uneven": (
        {"c": 16, "k": 16, "h": 9, "w": 11, "r": 2, "padding": (0, 2, 1, 1), "stride": (3, 1), "dilation": (1, 3)},
        "wgmma_128x32_by_2",
    ),
    "a depth shared by two": ({"c": 48, "k": 48, "h": 5, "w": 5, "r": 3, "padding": (1, 1, 1, 1)}, "wgmma_64x32_in_2"),
    "a depth shared by eight": ({"c": 272, "k": 80, "h": 6, "w": 6, "r": 2}, "wgmma_64x64_in_8"),
}


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("case", "name"), INT8_CASES.values(), ids=INT8_CASES)
def test_int8(case, name, residual):
    check(name, *cbr(case, "int8", "NHWC", residual=residual))


@pytest.mark.thorough
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("k", "name"), [(272, "wgmma_64x256_by_2"), (288, "wgmma_128x256_by_1")])
def test_int8_of_256_filters_at_a_time(k, name, residual):
    check(name, *cbr({"c": 128, "k": k, "h": 9, "w": 9, "r": 1}, "int8", "NHWC", residual=residual))


@pytest.mark.parametrize("activation", [{"relu": True, "most": 1.5}, {"swish": True}, {"relu": False}])
@pytest.mark.parametrize("name", ["wgmma_64x64_by_3", "wgmma_64x32_in_2"])
def test_activations_of_int8(name, activation):
    found = check(name, *cbr({"c": 32, "k": 48, "h": 5, "w": 5, "r": 2}, "int8", "NHWC", residual=True, **activation))
    assert (found["y"].min() < 0) != activation.get("relu", False)


@pytest.mark.parametrize("name", ["wgmma_64x64_by_3", "wgmma_64x64_in_2"])
def test_slices_of_int8_have_scales_of_their_own(name):
    def outputs(size, precision, layout):
        rest = size[1:]
        parts = Slice("wide", 16, 16), Slice("alone", 0, 32), Slice("wide", 0, 16)
        return parts, [
            tensor("wide", (48, *rest), precision, layout, 0.11),
            tensor("alone", (32, *rest), precision, layout, 0.3),
        ]

    check(name, *cbr({"c": 160, "k": 64, "h": 5, "w": 5, "r": 1}, "int8", "NHWC", outputs=outputs))


@pytest.mark.parametrize("name", ["wgmma_64x64_by_3", "wgmma_64x64_in_2"])
def test_results_spread_over_slices(name):
    """Four destinations within a tile: the middle of a wider tensor, a whole one, and both ends of the first."""

    def outputs(size, precision, layout):
        rest = size[1:]
        parts = Slice("wide", 16, 24), Slice("alone", 0, 8), Slice("wide", 0, 8), Slice("wide", 48, 16)
        return parts, [tensor("wide", (72, *rest), precision, layout), tensor("alone", (8, *rest), precision, layout)]

    case = {"c": 80, "k": 56, "h": 5, "w": 5, "r": 1}
    found = check(name, *cbr(case, "float16", "NHWC", outputs=outputs, relu=False))
    assert (found["alone"] < 0).any(), "without a ReLU some results are negative"


@pytest.mark.parametrize("activation", [{"relu": True, "most": 1.5}, {"swish": True}, {"relu": False}])
@pytest.mark.parametrize("name", ["wgmma_128x32_by_2", "wgmma_64x32_in_2"])
def test_activations(name, activation):
    case = {"c": 32, "k": 40, "h": 5, "w": 5, "r": 2}
    check(name, *cbr(case, "float16", "NHWC", residual=True, **activation))


def test_a_dense_layer_writes_float32():
    node, tensors, values = cbr({"c": 160, "k": 24, "h": 1, "w": 1, "r": 1}, "float16", "NCHW", vector=True)
    tensors[-1] = tensor("y", (24,))
    check("wgmma_64x32_in_2", node, tensors, values)
    assert "writes float16" in refusal("wgmma_64x64_by_3", node, tensors)


@pytest.mark.parametrize(
    ("case", "precision", "told"),
    [
        ({"c": 12, "k": 8, "h": 4, "w": 4, "r": 1}, "float16", "16 bytes of channels at a time"),
        ({"c": 16, "k": 8, "h": 4, "w": 4, "r": 1}, "int8", "16 bytes of channels at a time"),
        ({"c": 16, "k": 8, "h": 4, "w": 4, "r": 1}, "float32", "takes float16 or INT8"),
        ({"c": 16, "k": 8, "h": 4, "w": 4, "r": 1, "stride": (9, 1)}, "float16", "TMA cannot walk .* steps must be"),
    ],
)
def test_refusals_say_why(case, precision, told):
    node, tensors, _ = cbr(case, precision, "NHWC")
    assert re.search(told, refusal("wgmma_64x64_by_3", node, tensors))


def test_what_int8_refuses():
    sizes = {"c": 32, "k": 32, "h": 4, "w": 4, "r": 1}

    def outputs(size, precision, layout):
        parts = Slice("a", 0, 16), Slice("b", 0, 16)
        return parts, [tensor(name, (16, *size[1:]), precision, layout, 0.1) for name in "ab"]

    for case in ({"residual": True}, {"swish": True}, {"relu": True, "most": 6.0}):
        node, tensors, _ = cbr(sizes, "int8", "NHWC", outputs=outputs, **case)
        assert "one scale" in refusal("wgmma_64x64_by_3", node, tensors)
        assert tactics.candidates(*layers(one_node_graph(node, tensors), 2))[0].name.startswith("i8_mma")


def test_no_more_blocks_share_a_depth_than_it_has_parts():
    node, tensors, _ = cbr({"c": 128, "k": 64, "h": 4, "w": 4, "r": 1}, "float16", "NHWC")
    assert "2 parts" in refusal("wgmma_64x64_in_4", node, tensors)


def test_channels_of_a_stage_leave_few_zeros():
    def of(channels):
        node, tensors, _ = cbr({"c": channels, "k": 8, "h": 2, "w": 2, "r": 1}, "float16", "NHWC")
        return wgmma_tactics.chunk(layers(one_node_graph(node, tensors), 1)[0])

    assert [of(c) for c in (16, 24, 32, 64, 96, 144, 512)] == [16, 32, 32, 64, 32, 64, 64]
