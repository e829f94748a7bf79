"""Layers of LSTM cells on the active backend: each method against float64, arguments, what a step loads."""

import json

import numpy as np
import pytest

from kernels.convolution import recordings
from kernels.convolution.beside import recurrent
from kernels.convolution.common.sources import SOURCES
from tests.support.random_inputs import generator
from warplab import cp, profile
from warplab.hardware import backend
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.errors import DataRace

ERROR = {"float32": 2e-6, "float16": 2e-3}  # of h and c, which are near 1 at most; each step rounds h once
LAYERS = ((1, 1, 1, 1), (3, 2, 5, 7), (2, 33, 16, 24), (4, 5, 9, 40))  # steps, n, inputs, hidden
PERSISTENT = ((1, 1, 3, 32), (4, 8, 8, 64), (3, 9, 5, 96), (2, 33, 8, 128), (3, 3, 16, 160), (2, 64, 8, 256))


def layer(steps, n, inputs, hidden, dtype):
    """Arguments of `recurrent.lstm`, as NumPy arrays."""
    random = generator()

    def uniform(*shape):
        return random.uniform(-1, 1, shape)

    x, w, r = uniform(steps, n, inputs), uniform(4 * hidden, inputs), uniform(4 * hidden, hidden)
    w, r = w / np.sqrt(inputs), r / np.sqrt(hidden)
    biases, c = (uniform(4 * hidden) for _ in range(2)), uniform(n, hidden)
    h = uniform(n, hidden)
    return (
        *(array.astype(dtype) for array in (x, w, r)),
        *(array.astype(np.float32) for array in biases),
        h.astype(dtype),
        c.astype(np.float32),
    )


def check(arguments, method):
    y, c = recurrent.lstm(*map(cp.asarray, arguments), method=method)
    exact_y, exact_c = recurrent.reference(*arguments)
    dtype = arguments[0].dtype.name
    assert (y.dtype, c.dtype) == (arguments[0].dtype, np.float32)
    np.testing.assert_allclose(cp.asnumpy(y), exact_y, rtol=0, atol=ERROR[dtype])
    np.testing.assert_allclose(cp.asnumpy(c), exact_c, rtol=0, atol=2 * ERROR[dtype])


@pytest.mark.parametrize("method", ["separate", "fused"])
@pytest.mark.parametrize("dtype", ERROR)
def test_each_step_is_the_references(dtype, method):
    for shape in LAYERS:
        check(layer(*shape, dtype), method)


@pytest.mark.parametrize("shape", PERSISTENT, ids=str)
def test_all_steps_in_one_launch(shape):
    arguments = layer(*shape, "float16")
    check(arguments, "persistent")


def test_arguments_stay_as_they_were():
    for method in recurrent.METHODS:
        arguments = layer(3, 8, 8, 32, "float16")
        given = [cp.asarray(array) for array in arguments]
        recurrent.lstm(*given, method=method)
        for before, after in zip(arguments, given, strict=True):
            np.testing.assert_array_equal(cp.asnumpy(after), before)


def test_the_gates_are_in_cudnns_order():
    """Biases that shut one gate after the other, no weights: h is then known."""
    hidden, c = 32, np.full((1, 32), 0.5, np.float32)
    zeros = [np.zeros(shape, np.float16) for shape in ((1, 1, 1), (4 * hidden, 1), (4 * hidden, hidden))]
    h = np.zeros((1, hidden), np.float16)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    for method in recurrent.METHODS:
        for gate in range(4):
            bias = np.zeros(4 * hidden, np.float32)
            bias[gate * hidden : (gate + 1) * hidden] = 3
            i, f, g, o = (3.0 if k == gate else 0.0 for k in range(4))
            new = sigmoid(f) * 0.5 + sigmoid(i) * np.tanh(g)
            half = (bias / 2).astype(np.float32)
            y, last = recurrent.lstm(*map(cp.asarray, (*zeros, half, half, h, c)), method=method)
            np.testing.assert_allclose(cp.asnumpy(last), np.full((1, hidden), new), rtol=1e-6)
            np.testing.assert_allclose(cp.asnumpy(y)[0], np.full((1, hidden), sigmoid(o) * np.tanh(new)), atol=1e-3)


def test_wrong_arguments_are_named():
    right = [cp.asarray(array) for array in layer(2, 3, 4, 32, "float16")]

    def with_argument(position, array):
        return [*right[:position], array, *right[position + 1 :]]

    for arguments, options, error, message in (
        (with_argument(0, np.zeros((2, 3, 4), np.float16)), {}, TypeError, "x is a ndarray in host memory"),
        (with_argument(0, right[0][0]), {}, ValueError, r"x has shape \(3, 4\); it must be of three axes"),
        (with_argument(0, right[0][:0]), {}, ValueError, "no axis may be of length 0"),
        (with_argument(1, right[1][:-1]), {}, ValueError, r"w has shape \(127, 4\); it must be \(128, 4\)"),
        (with_argument(2, right[2][:-4]), {}, ValueError, r"r has shape \(124, 32\); with 32 hidden units it must be"),
        (with_argument(3, right[3].astype(np.float16)), {}, ValueError, "bias_w is float16; the kernel takes float32"),
        (with_argument(5, right[5][:2]), {}, ValueError, r"h has shape \(2, 32\); it must be \(3, 32\)"),
        (with_argument(6, right[5]), {}, ValueError, "c is float16; the kernel takes float32"),
        (right, {"method": "fast"}, ValueError, "there is no method 'fast'; choose one of separate, fused, persistent"),
    ):
        with pytest.raises(error, match=message):
            recurrent.lstm(*arguments, **options)


@pytest.mark.parametrize(
    ("n", "hidden", "dtype", "message"),
    [
        (8, 32, "float32", 'takes float16, and not float32: take method="fused"'),
        (65, 32, "float16", "takes up to 64 sequences, and not 65: .* or fewer at a time"),
        (8, 40, "float16", "no instance for 40 hidden units; 64 is the next that it takes"),
        (8, 1056, "float16", "no instance for 1056 hidden units; 1024 is the most"),
    ],
)
def test_layers_that_the_persistent_kernel_does_not_take(n, hidden, dtype, message):
    with pytest.raises(ValueError, match=message):
        recurrent.lstm(*map(cp.asarray, layer(1, n, 1, hidden, dtype)), method="persistent")


def test_instances_fit_the_gpu():
    for hidden in range(32, recurrent.MOST_HIDDEN + 1, 32):
        for n in (1, 8, 9, 33, 64):
            if recurrent.persistent_refusal(n, hidden, np.float16):
                continue
            shape = recurrent.persistent_shape(n, hidden)
            assert shape.hidden == hidden
            assert shape.blocks * shape.units == hidden
            assert shape.blocks <= recurrent.MOST_BLOCKS
            assert n <= 8 * shape.tiles < 2 * n + 8
            assert shape.shared_bytes <= 227 * 1024
    for hidden in (128, 256, 512, 768, 1024):
        assert not recurrent.persistent_refusal(64, hidden, np.float16)


def test_the_header_says_what_was_recorded():
    """µs per step of each case, rounded as written there."""
    cases = json.loads(recordings.path.read_text())["lstm"]["value"]["cases"]
    header = " ".join(SOURCES.text(recurrent.FILE).partition("#include")[0].replace("//", "").split())
    assert "batch " + ", ".join(f"{case['batch']} of {case['hidden']}" for case in cases) in header.replace(
        " units", ""
    )
    for name, by, algorithm in (
        ("lstm_cell and cuBLAS", "lab", "fused"),
        ("lstm_persistent", "lab", "persistent"),
        ("standard algorithm", "cuDNN", "STANDARD"),
        ("of its persistent ones", "cuDNN", "PERSIST"),
    ):
        rates = [
            min(
                row["seconds"] * 1e6 / case["steps"]
                for row in case["rows"]
                if row["dtype"] == "float16" and row["by"] == by and row["algorithm"].startswith(algorithm)
            )
            for case in cases
        ]
        assert f"{name} {', '.join(f'{rate:.1f}' for rate in rates)}" in header


# -- what the simulator sees -------------------------------------------------------------------------------------------


@pytest.fixture
def simulated():
    if backend.name() != "simulator":
        pytest.skip("the simulator counts, and finds races")


@pytest.mark.usefixtures("simulated")
def test_r_is_read_once_for_all_steps():
    steps, n, inputs, hidden = 5, 8, 8, 64
    arguments = layer(steps, n, inputs, hidden, "float16")
    with profile() as p:
        recurrent.lstm(*map(cp.asarray, arguments), method="persistent")
    (launch,) = (one for one in p if one.kernel.startswith("lstm_persistent"))
    blocks = recurrent.persistent_shape(n, hidden).blocks
    sectors_of_r, sectors_of_h = 4 * hidden * hidden * 2 // 32, n * hidden * 2 // 32
    each_step = blocks * (sectors_of_h + 4 * n)  # h, and of x·Wᵀ four units of each gate
    once = sectors_of_r + blocks * (4 + n)  # R, biases, c
    # A block asks at least once whether the others have arrived; how often, depends on the order in which they run.
    polls = launch.counts.global_load_sectors - (once + steps * each_step)
    assert blocks * (steps - 1) <= polls
    assert launch.counts.shared_load_conflicts == launch.counts.shared_store_conflicts == 0
    products = sum(launch.tensor_operations.values())
    assert products == steps * blocks * 2 * hidden // 32  # 16 × 8 × 16 each; n is 8


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    ("part", "wrong"),
    [("red.release.gpu.", "red.relaxed.gpu."), ("__syncthreads();  // sums of all warps", ";")],
    ids=["h is not released", "sums are read too early"],
)
def test_order_that_is_left_out_is_found(part, wrong):
    steps, n, hidden = 4, 8, 64
    shape = recurrent.persistent_shape(n, hidden)
    text = SOURCES.text(recurrent.FILE)
    assert text.count(part) == 1
    entry = f"lstm_persistent<{', '.join(map(str, shape))}>"
    source = CudaSource(text.replace(part, wrong), entry, SOURCES.options(recurrent.FILE), "lstm.cu", (entry,))
    _, _, r, bias, _, h, c = layer(steps, n, 1, hidden, "float16")
    of_x = np.zeros((steps, n, 4 * hidden), np.float16)
    y, last, arrived = np.zeros((steps, n, hidden), np.float16), np.zeros_like(c), np.zeros(1, np.uint32)
    arguments = of_x, r, bias, h, c, y, last, arrived, np.int32(steps), np.int32(n)
    size = {"shared_bytes": shape.shared_bytes, "cooperative": True}
    with pytest.raises(DataRace):
        simulate(source, shape.blocks, 32 * shape.warps, arguments, **size)
