"""The small network on the active backend, and its requests on a stand-in for CuPy that records and replays graphs."""

import ctypes
import sys
import types

import numpy as np
import pytest

from kernels.serving import small_network
from kernels.serving.small_network import BLOCK, KERNELS, Requests, SmallNetwork, WrongAnswer, on_device
from tests.support.random_inputs import generator
from warplab import cp
from warplab.hardware import backend

GUARD = 32  # elements before and after an output
F32 = np.float32


def _guarded(shape):
    whole = cp.asarray(np.full(int(np.prod(shape)) + 2 * GUARD, np.nan, F32))
    return whole, whole[GUARD:-GUARD].reshape(shape)


def _check_guards(whole):
    found = cp.asnumpy(whole)
    assert np.isnan(found[:GUARD]).all()
    assert np.isnan(found[-GUARD:]).all()


@pytest.mark.parametrize("size", [1, 2, 3, 15, 16, 17])
@pytest.mark.parametrize(("a", "b"), [(1, 8), (3, 16)])
def test_a_convolution_is_numpys(size, a, b):
    rng = generator()
    x, w, bias = rng.standard_normal((2, a, size, size)), rng.standard_normal((a, 3, 3, b)), rng.standard_normal(b)
    padded = np.pad(x.astype(F32), ((0, 0), (0, 0), (1, 1), (1, 1))).astype(float)
    expected = np.zeros((2, b, size, size)) + bias.astype(F32)[:, None, None]
    for i in range(3):
        for j in range(3):
            part = padded[:, :, i : i + size, j : j + size]
            expected += np.einsum("ncrs,co->nors", part, w[:, i, j].astype(F32).astype(float))
    whole, out = _guarded((2, b, size, size))
    given = [cp.asarray(array.astype(F32)) for array in (x, w, bias)]
    grid = (-(-size * size // BLOCK), b // 8, 2)
    KERNELS["cuda_conv3x3"].launch(grid, BLOCK, (*given, out, np.int32(a), np.int32(b), np.int32(size)))
    np.testing.assert_allclose(cp.asnumpy(out), np.maximum(expected, 0), atol=1e-4)
    _check_guards(whole)


@pytest.mark.parametrize("pixels", [1, 31, 32, 33, 300])
@pytest.mark.parametrize(("channels", "classes"), [(8, 1), (32, 10), (128, 33)])
def test_the_head_is_numpys(pixels, channels, classes):
    rng = generator()
    x, w = rng.standard_normal((3, channels, pixels)).astype(F32), rng.standard_normal((classes, channels)).astype(F32)
    bias = rng.standard_normal(classes).astype(F32)
    whole, out = _guarded((3, classes))
    sizes = (np.int32(channels), np.int32(classes), np.int32(pixels))
    KERNELS["cuda_head"].launch((3,), BLOCK, (*map(cp.asarray, (x, w, bias)), out, *sizes))
    expected = x.astype(float).mean(axis=2) @ w.T.astype(float) + bias
    np.testing.assert_allclose(cp.asnumpy(out), expected, atol=1e-4)
    _check_guards(whole)


@pytest.mark.parametrize("batch", [1, 3])
def test_requests_are_answered_and_checked(batch):
    network = SmallNetwork(layers=3, channels=8, size=5, classes=4)
    requests = Requests(network, on_device(network), batch)
    for k in range(6):
        requests.send(k)
        requests.receive()
    requests.send(1)
    requests._sent = 2  # as if the answer to another input had come
    with pytest.raises(WrongAnswer, match="the answer to input 2 changed between two requests"):
        requests.receive()


def test_answers_that_are_not_numpys_are_refused(monkeypatch):
    network = SmallNetwork(layers=1, channels=8, size=3, classes=2)
    weights = on_device(network)
    weights[-1] = weights[-1][0], weights[-1][1] + F32(0.01)
    with pytest.raises(WrongAnswer, match=r"the answer to input 0 is 0\.01"):
        Requests(network, weights)


def test_sizes_that_the_kernels_do_not_take_are_refused():
    with pytest.raises(ValueError, match="channels is 12; choose a multiple of 8 from 8 to 128"):
        SmallNetwork(channels=12)
    with pytest.raises(ValueError, match="layers is 0; a network needs at least 1"):
        SmallNetwork(layers=0)
    network = SmallNetwork()
    assert network.blocks == 16
    assert network.flop == 2 * 9 * 1024 * (3 * 32 + 15 * 32 * 32) + 32 * 1024 + 2 * 32 * 10


def test_launches_to_compare_are_those_of_a_whole_network():
    assert [(launch.grid, launch.block) for launch in small_network.launches()] == [
        *[((2, 2, 2), (BLOCK, 1, 1))] * 2,
        ((2, 1, 1), (BLOCK, 1, 1)),
    ]
    assert len({launch.name for launch in small_network.launches()}) == 3


# --- A stand-in for CuPy ---------------------------------------------------------------------------------------------


class _Array(np.ndarray):
    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


class _Stream:
    """Does at once what it is given, or records it for a graph."""

    current = None

    def __init__(self, non_blocking=False):
        self.ptr, self.recorded, self.done = id(self), None, []

    def __enter__(self):
        _Stream.current = self

    def __exit__(self, *error):
        _Stream.current = None

    def synchronize(self):
        assert self.recorded is None, "waits during a capture"

    def begin_capture(self):
        self.recorded = []

    def end_capture(self):
        calls, self.recorded = self.recorded, None

        def launch(stream=None):
            for call in calls:
                call()

        launch.calls = calls
        return types.SimpleNamespace(launch=launch)

    def put(self, call):
        call() if self.recorded is None else self.recorded.append(call)


def _memcpy(to, source, nbytes, kind, stream):
    assert stream == _Stream.current.ptr, "queued on another stream"
    _Stream.current.put(lambda: ctypes.memmove(to, source, nbytes))


def _kernel(grid, block, arguments, shared_mem=0):
    """The last kernel only: the answer is the number that the input begins with, for all classes."""
    x, *_, y, _, _, _ = arguments
    _Stream.current.put(lambda: y.__setitem__(..., x.reshape(len(x), -1)[:, :1]))


@pytest.fixture
def graphs(monkeypatch):
    def empty(shape, dtype=np.float32):
        return np.empty(shape, dtype).view(_Array)

    runtime = types.SimpleNamespace(memcpyAsync=_memcpy, memcpyHostToDevice=1, memcpyDeviceToHost=2)
    device = lambda: types.SimpleNamespace(synchronize=lambda: None)  # noqa: E731
    cuda = types.SimpleNamespace(Stream=_Stream, runtime=runtime, Device=device)
    module = types.SimpleNamespace(RawModule=lambda **k: types.SimpleNamespace(get_function=lambda name: _kernel))
    fake = types.SimpleNamespace(empty=empty, cuda=cuda, RawModule=module.RawModule)
    fake.asarray = lambda array: np.array(array).view(_Array)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setitem(sys.modules, "cupyx", types.SimpleNamespace(zeros_pinned=empty))
    monkeypatch.setattr(small_network.choice, "load", lambda name: fake)
    monkeypatch.setattr(small_network.backend, "name", lambda: "gpu")
    monkeypatch.setattr(small_network.SOURCES, "_functions", {})
    monkeypatch.setattr(small_network.SOURCES, "_modules", {})


@pytest.mark.skipif(backend.name() == "gpu", reason="a GPU shows it itself")
@pytest.mark.parametrize("graph", [True, False])
def test_a_request_is_one_graph(graphs, monkeypatch, graph):
    network = SmallNetwork(layers=1, channels=8, size=2, classes=3)

    def passed_through(weights, buffers, batch):
        x, *_, out = buffers
        return [small_network.LayerLaunch(KERNELS["cuda_head"], (batch,), (x, None, None, out, 1, 1, 1))]

    monkeypatch.setattr(SmallNetwork, "layer_launches", lambda self, *arguments: passed_through(*arguments))
    monkeypatch.setattr(SmallNetwork, "answer", lambda self, x: x.reshape(len(x), -1)[:, :1] + np.zeros((1, 3)))
    small_network._known.cache_clear()
    requests = Requests(network, [], 2, graph)
    small_network._known.cache_clear()
    calls = []
    run = requests.queue
    requests.queue = lambda: (calls.append(1), run())
    for k in range(5):
        requests.send(k)
        requests.receive()
    assert len(calls) == 5
    if graph:
        assert len(run.func.calls) == 3  # copy, kernel, copy
