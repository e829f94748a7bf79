"""The lab's small network as an engine for a server, on the active backend: kernels of ours, nothing else to install.

    engine = engines.make("kernels.serving.serve.engines.small_network_engine:small", sizes=[1, 8, 32])

On a GPU each batch size is a CUDA graph with buffers of its own; on the simulator the launches run one by one.
"""

from collections.abc import Sequence

import numpy as np

from kernels.serving.small_network import Buffers, SmallNetwork, on_device

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
        self._ready = {size: Buffers(network, weights, size) for size in self.sizes}

    def predict(self, batch: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
        """Answer images, float32, (n, *shape), or a list of them -> scores, float32, (n, classes)."""
        count = len(batch)
        if not 1 <= count <= self.sizes[-1]:
            raise ValueError(f"a batch of {count} images does not fit; this engine takes 1 to {self.sizes[-1]}")
        buffers = self._ready[next(size for size in self.sizes if size >= count)]
        np.stack(batch, out=buffers.given[:count])
        buffers.queue()
        buffers.wait()
        return buffers.answer[:count].copy()


def small(sizes: Sequence[int] = SIZES) -> NetworkEngine:
    """Return the network that the lab's measurements of sharing use: 16 convolutions, images of 32 × 32."""
    return NetworkEngine(SmallNetwork(), sizes)


def deep() -> NetworkEngine:
    """Return 64 wide convolutions for images of 8 × 8, one image at a time: an engine easily given too much to do."""
    return NetworkEngine(DEEP, (1,), "deep network")
