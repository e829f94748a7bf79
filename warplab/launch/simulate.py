"""A kernel is data: any kernel object and its arguments become a PTX entry and the bytes of its parameters.

`simulate` runs any kernel on the simulator, whatever backend made it. The drop-ins launch through it, the grading
checks and `profile` on a GPU use it too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from warplab import simulator
from warplab.compile.short_traceback import short_traceback
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.dimensions import dimensions
from warplab.launch.kernel_source import Source, source_of
from warplab.launch.launch_record import Assemble, LaunchRecord

simulator.SimulatorError._render_traceback_ = simulator.SimulatorFailure._render_traceback_ = short_traceback


def simulate(
    kernel,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: tuple,
    *,
    device: simulator.Device | None = None,
    shared_bytes: int = 0,
    **options,
) -> LaunchRecord:
    """Run `kernel` on the simulator and return what it did.

    `kernel`: a `cuda.jit` kernel (drop-in or Numba's own), a plain Python function, a CuPy kernel (drop-in, or on a
    GPU one that holds its source), a kernel of a `%%cuda` cell, or a `CudaSource`.
    `args`: arrays of the device, NumPy arrays (copied to the device, and back into the same array after the launch;
    so are CuPy's and Numba's on a GPU) and numbers. `options` are fields of `simulator.Options`.
    Raises ArgumentError (a TypeError) for arguments that do not fit, `simulator.SimulatorError` for what the
    kernel does wrong, `simulator.SimulatorFailure` where the simulator itself fails.
    """
    source, chosen = source_of(kernel), simulator.Options(**options)
    device = simulator.default_device() if device is None else device
    grid, block, shared_bytes = dimensions(grid, "grid"), dimensions(block, "block"), operator.index(shared_bytes)
    with prepare(source, tuple(args), device) as launch:
        try:
            profile = device.launch(launch.entry, grid, block, launch.params, shared_bytes=shared_bytes, options=chosen)
        except simulator.SimulatorError as error:
            if error.kernel is not None:
                error.kernel = source.name
                if error.profile is not None:
                    error.profile.kernel = source.name
                error.args = (error.message(),)
            raise
        except MemoryError:  # of this machine's memory, or of the simulated GPU's
            raise
        except Exception as error:
            raise simulator.SimulatorFailure(source.name, error) from error
        launch.copy_back()
    profile.kernel = source.name
    return LaunchRecord.of(profile, launch.assemble)


@dataclass
class Launch:
    """A kernel with its arguments in place. `names`: the kernel's parameter name of each array, by address.

    `assemble`: the source's, for these arguments.
    """

    entry: simulator.Entry
    params: list[bytes]
    names: dict[int, str]
    copy_back: Callable[[], None]
    assemble: Assemble


@contextmanager
def prepare(source: Source, args: tuple, device: simulator.Device) -> Iterator[Launch]:
    """Compile `source` for `args`, put host arrays on `device`; what was put there is freed in the end."""
    arrays = ArrayPlacement(device)
    try:
        entry, params, assemble = source.bind(args, arrays)
        for address, name in arrays.names.items():
            allocation = device.memory.find(address) or device.memory.find_freed(address)
            if allocation is not None:
                allocation.name = name
        yield Launch(entry, params, arrays.names, arrays.copy_back, assemble)
    finally:
        arrays.free()
