"""The lab's small network as an engine for a server, on the active backend: kernels of ours, nothing else to install.

    engine = engines.make("kernels.serving.small_network_engine:small", sizes=[1, 8, 32])

On a GPU each batch size is a CUDA graph with buffers of its own; on the simulator the launches run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.serving.small_network import BLOCK, SmallNetwork, on_device
from warplab.dropin import choice
from warplab.hardware import backend

SIZES = (1, 2, 4, 8, 16, 32)
DEEP = SmallNetwork(layers=64, channels=128, size=8)  # one image leaves most of a GPU idle, and takes long


class NetworkEngine:
    """`network` for batches of up to the largest of `sizes`.

    A batch runs in the smallest size that holds it, filled up with what lay there before. `shape`: of an image. One
    caller at a time.
    """

    takes_lists = True

    def __init__(self, network: SmallNetwork, sizes: Sequence[int] = SIZES, name: str = "small network") -> None:
        if not sizes or min(sizes) < 1:
            raise ValueError(f"sizes is {list(sizes)}; give batch sizes of 1 or more, such as {list(SIZES)}")
        self.network, self.sizes, self.name = network, tuple(sorted(sizes)), name
        self.shape = (3, network.size, network.size)
        weights = on_device(network)
        self._ready = {size: _prepared(network, weights, size) for size in self.sizes}

    def predict(self, batch: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Images, float32, (n, *shape), or a list of them -> scores, float32, (n, classes)."""
        count = len(batch)
        if not 1 <= count <= self.sizes[-1]:
            raise ValueError(f"a batch of {count} images does not fit; this engine takes 1 to {self.sizes[-1]}")
        given, run, answer = self._ready[next(size for size in self.sizes if size >= count)]
        np.stack(batch, out=given[:count])
        run()
        return answer[:count].copy()


def small(sizes: Sequence[int] = SIZES) -> NetworkEngine:
    """The network that the lab's measurements of sharing use: 16 convolutions, images of 32 × 32."""
    return NetworkEngine(SmallNetwork(), sizes)


def deep() -> NetworkEngine:
    """64 wide convolutions for images of 8 × 8, one image at a time: an engine that is easily given too much to do."""
    return NetworkEngine(DEEP, (1,), "deep network")


def _prepared(
    network: SmallNetwork, weights: list[tuple[Any, Any]], size: int
) -> tuple[np.ndarray, Callable[[], None], np.ndarray]:
    """Host memory for images, what computes their scores and waits for them, host memory for the scores."""
    cp, on_gpu = choice.load("cp"), backend.name() == "gpu"
    host = _pinned if on_gpu else np.zeros
    given, answer = host((size, 3, network.size, network.size), np.float32), host((size, network.classes), np.float32)
    x, y = cp.empty(given.shape, np.float32), cp.empty(answer.shape, np.float32)
    inner = [cp.empty((size, network.channels, network.size, network.size), np.float32) for _ in range(2)]
    steps = network.steps(weights, (x, *inner, y), size)

    def launch() -> None:
        for step in steps:
            step.kernel.launch(step.grid, BLOCK, step.arguments)

    def run() -> None:
        cp.copyto(x, cp.asarray(given))
        launch()
        answer[...] = cp.asnumpy(y)

    return given, _captured(given, x, launch, y, answer) if on_gpu else run, answer


def _captured(given: np.ndarray, x: Any, launch: Callable[[], None], y: Any, answer: np.ndarray) -> Callable[[], None]:
    """The copies and launches as one CUDA graph, and the wait for it."""
    import cupy

    copy, runtime = cupy.cuda.runtime.memcpyAsync, cupy.cuda.runtime
    stream = cupy.cuda.Stream(non_blocking=True)

    def queue() -> None:
        with stream:
            copy(x.data.ptr, given.ctypes.data, given.nbytes, runtime.memcpyHostToDevice, stream.ptr)
            launch()
            copy(answer.ctypes.data, y.data.ptr, answer.nbytes, runtime.memcpyDeviceToHost, stream.ptr)

    queue()  # loads the kernels, which a capture must not
    stream.synchronize()
    stream.begin_capture()
    queue()
    graph = stream.end_capture()

    def run() -> None:
        graph.launch(stream)
        stream.synchronize()

    return run


def _pinned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    import cupyx

    return cupyx.zeros_pinned(shape, dtype)
