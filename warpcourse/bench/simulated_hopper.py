"""Labs' kernels for Hopper in the simulator: tensor maps without a driver, and launches of the same PTX."""

from pathlib import Path
from typing import Any

import numpy as np

from warplab.launch import profiling
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.memory import tensor_maps
from warplab.simulator.translate.special_registers import NUMBER_OF_SMS

_ENCODERS: dict[str, Any] = {
    "cuTensorMapEncodeTiled": tensor_maps.encode_tiled,
    "cuTensorMapEncodeIm2col": tensor_maps.encode_im2col,
}


def encoded(call: str, arguments: tuple) -> np.ndarray:
    """Return the simulator's 128 bytes, as one value, for a driver's function and what it is given after the map.

    RuntimeError where the driver would refuse them, with the rule that they break.
    """
    try:
        return np.frombuffer(_ENCODERS[call](*arguments), f"V{tensor_maps.MAP_BYTES}")
    except ValueError as error:
        raise RuntimeError(f"the simulator answers {call} with CUDA_ERROR_INVALID_VALUE: {error}") from None


class SimulatedKernel:
    """Takes the place of `hopper.CubinKernel`. `profile` and `simulate` take it, too, as any other kernel."""

    def __init__(self, file: Path, entry: str, options: tuple[str, ...]) -> None:
        self._warplab_source = CudaSource(file.read_text(encoding="utf-8"), entry, options, file.name)

    def resident_clusters(self, cluster: int, threads: int, shared_bytes: int) -> int:
        """Return how many clusters of `cluster` blocks an H100 SXM has multiprocessors for, one block on each."""
        return NUMBER_OF_SMS // cluster

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple[Any, ...],
        shared_mem: int = 0,
        *,
        early: bool = False,
        together: bool = False,
    ) -> None:
        """Run a launch and wait for it, as `hopper.CubinKernel` queues one. No launches overlap, whatever `early` says.

        Raises SimulatorError for what the kernel does wrong.
        """
        counters = profiling.active()
        launched = simulate(
            self, grid, block, arguments, shared_bytes=shared_mem, counters=counters, cooperative=together
        )
        profiling.record(launched)
