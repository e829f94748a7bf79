"""What the lab says of cuDNN and measures with it, as far as no GPU is needed."""

from collections import Counter

import numpy as np
import pytest

from kernels.convolution import recordings as lab_recordings
from kernels.convolution.benchmark import BENCHMARK
from kernels.convolution.cudnn import calls, graph, library
from kernels.convolution.definition import networks, operands, reference
from kernels.convolution.definition.geometry import PASSES, Convolution
from kernels.convolution.measured import network as measured_network
from kernels.convolution.measurements import MEASUREMENTS
from tests.support.random_inputs import generator
from warpcourse.bench.recordings import Recordings
from warplab.hardware import backend

# The calls of the sources' example, in its order (facts of lab 06; the names are cuDNN 7's).
FLOW = [
    "cudnnCreate",
    "cudnnCreateTensorDescriptor",
    "cudnnSetTensor4dDescriptor",
    "cudnnCreateFilterDescriptor",
    "cudnnSetFilter4dDescriptor",
    "cudnnCreateConvolutionDescriptor",
    "cudnnSetConvolution2dDescriptor",
    "cudnnGetConvolution2dForwardOutputDim",
    "cudnnFindConvolutionForwardAlgorithm",
    "cudnnFindConvolutionForwardAlgorithmEx",
    "cudnnGetConvolutionForwardWorkspaceSize",
    "cudnnConvolutionForward",
    "cudnnAddTensor",
    "cudnnActivationForward",
    "cudnnDestroyTensorDescriptor",
    "cudnnDestroyFilterDescriptor",
    "cudnnDestroyConvolutionDescriptor",
    "cudnnDestroy",
]
MOST_BYTES = 360_000  # of recordings.json

CASES = (
    Convolution(3, 4, 7, 9, 6, 3, 2, (1, 0), (2, 1), (1, 2), 2),
    Convolution(2, 5, 6, 6, 7, 1, 1),
    Convolution(1, 8, 5, 5, 8, 3, 3, (1, 1), groups=8),
    Convolution(3, 6, 9, 9, 12, 3, 3, (2, 2), (3, 3), (2, 2), 3),
    Convolution(5, 3, 6, 7, 20, 3, 3, (1, 1), (2, 2)),
)


def test_every_call_of_the_flow_is_mapped_once_and_in_order():
    then = [call.then for call in calls.CALLS]
    assert max(Counter(then).values()) == 1
    assert [name for name in then if name in FLOW] == FLOW
    assert all(call.today and call.why for call in calls.CALLS)
    assert (calls.CALLS[0].then, calls.CALLS[0].today) == ("cudnnCreate", "cudnn.create_handle()")


def test_created_descriptors_are_set_and_destroyed():
    names = {call.then for call in calls.CALLS}
    for kind in ("Tensor", "Filter", "Convolution", "Activation"):
        assert {f"cudnnCreate{kind}Descriptor", f"cudnnDestroy{kind}Descriptor"} <= names


@pytest.mark.skipif(backend.name() == "gpu", reason="says what is missing where there is no GPU")
@pytest.mark.parametrize("function", [library.frontend, library.handle, library.version])
def test_without_a_gpu_cudnn_says_so(function):
    with pytest.raises(RuntimeError, match=r"cuDNN needs an NVIDIA GPU; .* is in kernels/convolution/recordings\.json"):
        function()


@pytest.mark.skipif(backend.name() == "gpu", reason="here nothing may be asked of cuDNN")
def test_a_graph_names_what_does_not_fit_before_it_needs_a_gpu():
    conv = CASES[1]
    for arguments, message in (
        (("sideways",), "there is no kind 'sideways'"),
        (("forward", "NHWC", "float64"), "there is no dtype 'float64'"),
        (("forward", "HWCN"), "there is no layout 'HWCN'"),
    ):
        with pytest.raises(ValueError, match=message):
            graph.ConvolutionGraph(conv, *arguments)
    with pytest.raises(ValueError, match="bias and relu follow the forward pass; this is backward_data"):
        graph.ConvolutionGraph(conv, "backward_data", relu=True)


def test_strides_name_the_layout():
    assert graph.strides((2, 3, 5, 7), "NCHW") == [105, 35, 7, 1]
    assert graph.strides((2, 3, 5, 7), "NHWC") == [105, 1, 21, 3]


def test_an_error_is_reported_by_its_status():
    failed = RuntimeError(
        "detail::finalize(engine.get_ptr()) failed with message: , and code: CUDNN_STATUS_NOT_SUPPORTED"
    )
    assert graph.status_of(failed) == "CUDNN_STATUS_NOT_SUPPORTED"
    assert graph.status_of(RuntimeError("first\nlast")) == "last"
    assert graph.status_of(RuntimeError()) == "RuntimeError"


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", PASSES)
@pytest.mark.parametrize("conv", CASES, ids=str)
def test_the_sampled_error_is_that_of_the_definition(conv, kind, layout):
    random = generator()
    first, second, _ = (random.uniform(-1, 1, shape) for shape in operands.shapes(conv, kind, layout))
    exact = getattr(reference, kind)(first, second, conv, layout)
    error = operands.error_of(conv, kind, layout, (first, second))
    assert error(exact) < 1e-14
    for place in (0, -1):  # both ends are in the sample
        wrong = exact.copy()
        wrong.flat[place] += 1
        assert error(wrong) > 1e-3
    left_out = exact.copy()
    left_out.flat[exact.size // 2] = np.nan
    assert np.isnan(error(left_out))


def test_the_sampled_error_takes_bias_and_relu():
    conv, random = CASES[0], generator()
    x, w, _ = (random.uniform(-1, 1, shape) for shape in operands.shapes(conv, "forward", "NHWC"))
    bias = random.uniform(-1, 1, conv.k)
    exact = np.maximum(reference.forward(x, w, conv, "NHWC") + bias, 0)
    assert operands.error_of(conv, "forward", "NHWC", (x, w), bias=bias, relu=True)(exact) < 1e-14


def test_resnet50_is_whole():
    counts = Counter()
    for layer in networks.resnet50(2):
        counts[layer.kind] += layer.count
    assert counts == {
        "convolution": 53,
        "batch norm": 53,
        "ReLU": 49,
        "addition": 16,
        "pooling": 2,
        "fully connected": 1,
        "softmax": 1,
    }
    assert networks.parameters(networks.resnet50(2)) == 25_557_032  # as frameworks count them
    assert len({(layer.kind, layer.name) for layer in networks.resnet50(2)}) == len(networks.resnet50(2))
    assert set(counts) | {"update"} == set(networks.KINDS)


def test_folding_leaves_the_activations_after_sums():
    folded = networks.folded_resnet50(4)
    counts = Counter()
    for layer in folded:
        counts[layer.kind] += layer.count
    assert counts == {
        "convolution": 53,
        "ReLU": 16,
        "addition": 16,
        "pooling": 2,
        "fully connected": 1,
        "softmax": 1,
    }
    # 49 activations, 16 of them after sums: the others follow a convolution.
    assert sum(layer.count for layer in folded if layer.relu) == 49 - 16


def test_by_kind_keeps_the_time():
    rows = [
        {"layer": "a", "kind": "ReLU", "seconds": 2.0, "count": 3},
        {"layer": "b", "kind": "pooling", "seconds": 5.0, "count": 1},
        {"layer": "c", "kind": "ReLU", "seconds": 0.5, "count": 4},
    ]
    assert [(row["kind"], row["seconds"], row["count"]) for row in measured_network.by_kind(rows)] == [
        ("ReLU", 8.0, 1),
        ("pooling", 5.0, 1),
    ]


def test_the_benchmark_shows_only_what_is_measured():
    assert set(BENCHMARK.tables) <= set(MEASUREMENTS)


@pytest.fixture(scope="module")
def recorded():
    return lab_recordings.load()


def test_recordings_are_of_today_s_keys_and_small(recorded):
    assert isinstance(lab_recordings, Recordings)
    assert set(recorded) == set(MEASUREMENTS)
    assert lab_recordings.path.stat().st_size < MOST_BYTES


def test_recorded_outputs_were_right(recorded):
    found = BENCHMARK.summary({key: measurement.value for key, measurement in recorded.items()})
    assert found["correct"] is True


def test_recorded_shares_follow_from_the_recorded_times(recorded):
    for key in ("network", "folded_network", "older_networks"):
        for found in recorded[key].value["configurations"]:
            total = sum(layer["seconds"] * layer["count"] for layer in found["layers"])
            convolutions = sum(
                layer["seconds"] * layer["count"] for layer in found["layers"] if layer["kind"] == "convolution"
            )
            assert found["seconds"] == pytest.approx(total, rel=2e-3)  # four digits are recorded of each
            assert found["convolution_share"] == pytest.approx(convolutions / total, rel=2e-3)
            count = sum(layer["count"] for layer in found["layers"] if layer["kind"] == "convolution")
            of_kinds = found["batch"] == 1 or key == "older_networks"  # a row for each kind
            assert count == (1 if of_kinds else 53)


def test_recorded_ratios_follow_from_the_recorded_times(recorded):
    for key in ("forward", "fused", "backward_data", "backward_filter"):
        value = recorded[key].value
        ratios = [row["cudnn_seconds"] / row["seconds"] for row in value["rows"]]
        assert len(ratios) == 23
        assert value["least"] == pytest.approx(min(ratios), rel=2e-3)
        assert value["geometric_mean"] == pytest.approx(np.exp(np.mean(np.log(ratios))), rel=2e-3)


# Of cuDNN's fastest plan in the same run: geometric mean over the layers, and the least of them.
GOALS = {"forward": (0.9, 0.6), "fused": (0.9, 0.6), "backward_data": (0.7, 0), "backward_filter": (0.7, 0)}


@pytest.mark.parametrize("key", GOALS)
def test_recorded_ratios_reach_what_the_lab_aims_at(recorded, key):
    mean, least = GOALS[key]
    assert recorded[key].value["geometric_mean"] >= mean
    assert recorded[key].value["least"] >= least


def test_recorded_fusion_costs_as_good_as_nothing(recorded):
    assert recorded["fused"].value["cost_of_fusion"] < 1.02


def test_recorded_depthwise_is_at_cudnn_s_speed(recorded):
    value = recorded["depthwise"].value
    assert len(value["forward"]["rows"]) == len(networks.mobilenet())
    assert all(value[key]["geometric_mean"] >= 1 for key in ("forward", "forward_float32"))
    assert value["forward"]["least"] >= 0.99
    assert value["forward_float32"]["least"] >= 1
    assert all(value[key]["least"] >= 0.7 for key in ("backward_data", "backward_filter"))
