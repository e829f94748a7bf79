"""A small network to share a GPU with: its weights, its answer by NumPy, its launches, and requests to it.

`SmallNetwork` is `layers` convolutions of 3 x 3 with ReLU and a head (mean of each channel, dense layer); its weights
are random, from a seed, scaled so that values neither grow nor shrink from layer to layer. What it computes means
nothing; how long it takes is what a trained network of its shape takes.

`Requests` holds the buffers for one request at a time: `send(k)` queues the copy of the k-th input, all launches and
the copy of the answer, on a GPU as one CUDA graph; `receive()` waits and checks the answer.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpcourse.bench.compared_launches import Launch
from warpcourse.bench.lab_kernels import Kernel, Sources, by_name
from warplab.dropin import choice
from warplab.hardware import backend

SOURCES = Sources(__package__)
KERNELS = by_name(
    Kernel("cuda_conv3x3", SOURCES, "small_network.cu", "conv3x3", alignment=16),
    Kernel("cuda_head", SOURCES, "small_network.cu", "head"),
)
BLOCK = 256  # threads per block
OUT = 8  # channels that a thread of conv3x3 computes
MOST_CHANNELS = 128
IMAGES = 8  # different images, which take turns within a batch
INPUTS = 4  # different batches of them, which requests take in turns
TOLERANCE = 1e-3  # of an answer against NumPy's float64, relative to the largest logit


class WrongAnswer(RuntimeError):
    """A request was answered, but not with what NumPy computes."""


@dataclass(frozen=True)
class LayerLaunch:
    """One launch: a kernel of KERNELS, its grid, and its arguments."""

    kernel: Kernel
    grid: tuple[int, ...]
    arguments: tuple


@dataclass(frozen=True)
class SmallNetwork:
    """A network for square images with three channels.

    `layers`: convolutions. `channels`: of each, a multiple of 8 up to 128. `size`: of an image, in pixels along an
    edge. `classes`: length of an answer.
    """

    layers: int = 16
    channels: int = 32
    size: int = 32
    classes: int = 10
    seed: int = 11

    def __post_init__(self) -> None:
        """Raise ValueError for sizes that the kernels do not take."""
        for name in ("layers", "size", "classes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a network needs at least 1")
        if not 0 < self.channels <= MOST_CHANNELS or self.channels % OUT:
            raise ValueError(
                f"channels is {self.channels}; choose a multiple of {OUT} from {OUT} to {MOST_CHANNELS}, as a thread "
                f"computes {OUT} channels"
            )

    @property
    def widths(self) -> list[tuple[int, int]]:
        """Return channels that go into and come out of each convolution."""
        return [(3 if layer == 0 else self.channels, self.channels) for layer in range(self.layers)]

    @property
    def flop(self) -> int:
        """Return operations for one image, a multiply-add counted as two."""
        convolutions = sum(2 * 9 * a * b * self.size**2 for a, b in self.widths)
        return convolutions + self.channels * self.size**2 + 2 * self.channels * self.classes

    @property
    def blocks(self) -> int:
        """Return blocks of one convolution at batch 1: at most so many SMs have work."""
        return math.ceil(self.size**2 / BLOCK) * self.channels // OUT

    def weights(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (filters, bias) of each convolution, then of the head, float32.

        Filters: [channels in, 3, 3, channels out]; the head's: [classes, channels].
        """
        rng = np.random.default_rng(self.seed)
        found = []
        for a, b in self.widths:  # He and others (2015): variance 2 / inputs keeps that of the values through a ReLU
            filters = rng.standard_normal((a, 3, 3, b)) * math.sqrt(2 / (9 * a))
            found.append((filters.astype(np.float32), rng.uniform(-0.1, 0.1, b).astype(np.float32)))
        dense = rng.standard_normal((self.classes, self.channels))
        found.append((dense.astype(np.float32), rng.uniform(-1, 1, self.classes).astype(np.float32)))
        return found

    def images(self, count: int, seed: int = 2017) -> np.ndarray:
        """Return `count` random images, each of another colour: float32, [count, 3, size, size]."""
        rng = np.random.default_rng(seed)
        colours = rng.standard_normal((count, 3, 1, 1))
        return (colours + rng.uniform(-1, 1, (count, 3, self.size, self.size))).astype(np.float32)

    def answer(self, images: np.ndarray) -> np.ndarray:
        """Return what NumPy computes in float64: [images, classes]."""
        *convolutions, (dense, offset) = self.weights()
        x = images.astype(np.float64)
        for filters, bias in convolutions:
            padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
            y = np.zeros((len(x), self.channels, self.size, self.size)) + bias[:, None, None]
            for i in range(3):
                for j in range(3):
                    part = padded[:, :, i : i + self.size, j : j + self.size]
                    y += np.einsum("ncrs,co->nors", part, filters[:, i, j], optimize=True)
            x = np.maximum(y, 0)
        return x.mean(axis=(2, 3)) @ dense.T + offset

    def layer_launches(
        self, weights: list[tuple[Any, Any]], buffers: tuple[Any, Any, Any, Any], batch: int
    ) -> list[LayerLaunch]:
        """Return the launches for one batch, in order.

        `weights`: as `weights()`, on the device. `buffers`: input [batch, 3, size, size], two of
        [batch, channels, size, size] that take turns, and the answer [batch, classes].
        """
        x, one, other, out = buffers
        found = []
        for layer, (a, b) in enumerate(self.widths):
            y = other if layer % 2 else one
            grid = (math.ceil(self.size**2 / BLOCK), b // OUT, batch)
            sizes = (np.int32(a), np.int32(b), np.int32(self.size))
            found.append(LayerLaunch(KERNELS["cuda_conv3x3"], grid, (x, *weights[layer], y, *sizes)))
            x = y
        sizes = (np.int32(self.channels), np.int32(self.classes), np.int32(self.size**2))
        found.append(LayerLaunch(KERNELS["cuda_head"], (batch,), (x, *weights[-1], out, *sizes)))
        return found


class Buffers:
    """Buffers for one batch of a network on the active backend, and the launches that answer it.

    `given`, `answer`: in host memory, pinned on a GPU, float32. `queue()` queues the copy of `given`, all launches and
    the copy of the answer, and returns at once on a GPU; `wait()` waits for the answer. `weights`: on the device, as
    `on_device` gives them. `graph`: whether that is one CUDA graph, or a call per copy and launch, as on the simulator.
    """

    def __init__(self, network: SmallNetwork, weights: list[tuple[Any, Any]], batch: int, graph: bool = True) -> None:
        cp, on_gpu = choice.load("cp"), backend.name() == "gpu"
        zeros = _pinned if on_gpu else functools.partial(np.zeros, dtype=np.float32)
        self.given, self.answer = zeros((batch, 3, network.size, network.size)), zeros((batch, network.classes))
        self._x, self._y = cp.empty(self.given.shape, np.float32), cp.empty(self.answer.shape, np.float32)
        inner = [cp.empty((batch, network.channels, network.size, network.size), np.float32) for _ in range(2)]
        self._launches = network.layer_launches(weights, (self._x, *inner, self._y), batch)
        self.stream: Any = None
        self.queue: Callable[[], None] = self._queue
        if on_gpu:
            self.stream, self.queue = cp.cuda.Stream(non_blocking=True), self._queue_on_stream
            self.queue()  # loads the kernels, which a capture must not
            self.wait()
            if graph:
                self.stream.begin_capture()
                self.queue()
                self.queue = functools.partial(self.stream.end_capture().launch, self.stream)

    def wait(self) -> None:
        """Wait for the answer."""
        if self.stream is not None:
            self.stream.synchronize()

    def _queue(self) -> None:
        cp = choice.load("cp")
        cp.copyto(self._x, cp.asarray(self.given))
        for layer in self._launches:
            layer.kernel.launch(layer.grid, BLOCK, layer.arguments)
        self.answer[...] = cp.asnumpy(self._y)

    def _queue_on_stream(self) -> None:
        import cupy

        runtime, stream, given, answer = cupy.cuda.runtime, self.stream, self.given, self.answer
        with stream:
            runtime.memcpyAsync(
                self._x.data.ptr, given.ctypes.data, given.nbytes, runtime.memcpyHostToDevice, stream.ptr
            )
            for layer in self._launches:
                layer.kernel.launch(layer.grid, BLOCK, layer.arguments)
            runtime.memcpyAsync(
                answer.ctypes.data, self._y.data.ptr, answer.nbytes, runtime.memcpyDeviceToHost, stream.ptr
            )


class Requests(Buffers):
    """One request at a time to a network on the active backend: `send(k)`, then `receive()`.

    `batch`: images in a request. Raises WrongAnswer where an answer is not NumPy's.
    """

    def __init__(self, network: SmallNetwork, weights: list[tuple[Any, Any]], batch: int = 1, graph: bool = True):
        super().__init__(network, weights, batch, graph)
        images, answers = _known(network)
        taken = (np.arange(batch) + np.arange(INPUTS)[:, None]) % IMAGES
        self._inputs, self._expected = images[taken], answers[taken]
        self.batch, self._sent = batch, 0
        self._bytes = [self._first_answer(k) for k in range(INPUTS)]

    def send(self, k: int) -> None:
        """Queue the request with the k-th input; return at once on a GPU."""
        self._sent = k % INPUTS
        self.given[...] = self._inputs[self._sent]
        self.queue()

    def receive(self) -> None:
        """Wait for the answer and compare it with the first one for this input, bit by bit."""
        self.wait()
        if self.answer.tobytes() != self._bytes[self._sent]:
            apart = np.abs(self.answer - self._expected[self._sent]).max()
            raise WrongAnswer(
                f"the answer to input {self._sent} changed between two requests; it is {apart:.3g} from NumPy's"
            )

    def _first_answer(self, k: int) -> bytes:
        self.answer[...] = np.nan
        self.send(k)
        self.wait()
        expected = self._expected[k]
        apart = np.abs(self.answer - expected).max()
        if not apart <= TOLERANCE * np.abs(expected).max():
            raise WrongAnswer(f"the answer to input {k} is {apart:.3g} from NumPy's, which is at most {expected.max()}")
        return self.answer.tobytes()


@functools.cache
def _known(network: SmallNetwork) -> tuple[np.ndarray, np.ndarray]:
    images = network.images(IMAGES)
    return images, network.answer(images)


def on_device(network: SmallNetwork) -> list[tuple[Any, Any]]:
    """Return the network's weights in device memory."""
    cp = choice.load("cp")
    weights = [(cp.asarray(filters), cp.asarray(bias)) for filters, bias in network.weights()]
    if backend.name() == "gpu":
        cp.cuda.Device().synchronize()  # streams that do not wait for the default one read them
    return weights


def launches() -> list[Launch]:
    """Return launches of a network of two convolutions for two images: counters to compare with Nsight Compute's."""
    network, batch = SmallNetwork(layers=2, channels=16, size=20), 2
    rng = np.random.default_rng(network.seed)
    inner = (batch, network.channels, network.size, network.size)
    one, other = (rng.uniform(0, 1, inner).astype(np.float32) for _ in range(2))
    out = np.full((batch, network.classes), np.nan, np.float32)
    queued = network.layer_launches(network.weights(), (network.images(batch), one, other, out), batch)
    return [
        Launch(f"{layer.kernel.name}, launch {number}", layer.kernel.function, layer.grid, BLOCK, layer.arguments)
        for number, layer in enumerate(queued)
    ]


def _pinned(shape: tuple[int, ...]) -> np.ndarray:
    import cupyx

    return cupyx.zeros_pinned(shape, np.float32)
