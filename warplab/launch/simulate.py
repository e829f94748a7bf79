"""Launches on the simulator: any kernel object with its arguments becomes a PTX entry and the bytes of its parameters.

The drop-ins, the grading checks and `profile` on a GPU launch through this module.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from warplab import simulator
from warplab.compile.short_traceback import interrupted, short_traceback
from warplab.launch import dlpack, policy, profiling
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import BoundKernel, CudaSource, KernelSource, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.terms import tell
from warplab.simulator.run.device import launching

# The simulator itself knows nothing of notebooks.
for _error in (simulator.SimulatorError, simulator.SimulatorFailure):
    setattr(_error, "_render_traceback_", short_traceback)  # noqa: B010 - what IPython asks for


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
    so are CPU arrays with `__dlpack__`, and CuPy's and Numba's on a GPU) and numbers. `shared_bytes`: dynamic shared
    memory per block. `options`: fields of `simulator.Options`.
    Raises ArgumentError (a TypeError) for arguments that do not fit, `simulator.SimulatorError` for what the
    kernel does wrong, `simulator.SimulatorFailure` where the simulator itself fails.
    """
    source, chosen = source_of(kernel), simulator.Options(**options)
    grid, block, shared_bytes = dimensions(grid, "grid"), dimensions(block, "block"), operator.index(shared_bytes)
    args = tuple(dlpack.host_view(value) if dlpack.is_foreign(value) else value for value in args)
    with prepare(source, args, device) as launch:
        return launch.run(grid, block, shared_bytes, chosen)


@dataclass
class PreparedLaunch:
    """A kernel compiled for its arguments, with these in place on `device`. `kernel`: its name in its source.

    `array_names`: the kernel's parameter name of each array, by address. `args`: the arguments themselves.
    """

    kernel: str
    bound: BoundKernel
    device: simulator.Device
    array_names: dict[int, str]
    copy_back: Callable[[], None]
    args: tuple
    language: str

    def run(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int, options: simulator.Options
    ) -> LaunchRecord:
        """Launch, wait, and copy host arrays back. Raises what `simulate` raises, but for arguments.

        A device that has a queue, one of `virtual_devices`, runs the launch later and then fills in its record.
        """
        if self.device.queue is not None:
            return self.device.queue.add(self, grid, block, shared_bytes, policy.applied(options))
        try:
            profile = self._launch(grid, block, shared_bytes, policy.applied(options))
        except simulator.SimulatorError:
            raise
        except KeyboardInterrupt as error:
            interrupted(error, f"the simulator ran {self.kernel}")
            raise
        except MemoryError:  # of this machine's memory, or of the simulated GPU's
            raise
        except Exception as error:
            raise simulator.SimulatorFailure(self.kernel, error) from error
        self.copy_back()
        profile.kernel = self.kernel
        return LaunchRecord.of(profile, self.bound.assemble, max_registers=self.bound.max_registers)

    def _launch(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int, options: simulator.Options
    ) -> simulator.LaunchProfile:
        entry, params = self.bound.entry, self.bound.params
        before = self.device.memory.contents() if policy.may_excuse(self.kernel) else None
        try:
            return self.device.launch(entry, grid, block, params, shared_bytes=shared_bytes, options=options)
        except simulator.SimulatorError as error:
            if error.kernel is not None:
                error.kernel = self.kernel
                if error.profile is not None:
                    error.profile.kernel = self.kernel
            tell(error, self.language)
            error.sources = entry.program.sources
            profiling.failed(error)
            without = policy.without(error)
            if before is None or without is None or replace(options, **without) == options:
                raise
            self.device.memory.replace(before)
        return self._launch(grid, block, shared_bytes, replace(options, **without))


@contextmanager
def prepare(source: KernelSource, args: tuple, device: simulator.Device | None = None) -> Iterator[PreparedLaunch]:
    """Compile `source` for `args` and put host arrays on `device` (the default one), where they are freed at the end.

    Launches of other threads wait meanwhile. Raises ArgumentError for arguments that do not fit, and what the compilers
    raise.
    """
    with launching:
        yield from _prepared(source, args, device)


def _prepared(source: KernelSource, args: tuple, device: simulator.Device | None) -> Iterator[PreparedLaunch]:
    device = simulator.default_device() if device is None else device
    arrays = ArrayPlacement(device)
    try:
        try:
            bound = source.bind(args, arrays)
        except ArgumentError as error:
            if isinstance(source, CudaSource):  # CuPy passes on what it is given
                wrong = simulator.WrongArgument(str(error), kernel=source.name)
                wrong.sources = {source.file: source.code}
                profiling.failed(wrong)
                error.in_report = wrong.in_report
            raise
        for address, name in arrays.names.items():
            allocation = device.memory.find(address) or device.memory.find_freed(address)
            if allocation is not None:
                allocation.name = name
        yield PreparedLaunch(source.name, bound, device, arrays.names, arrays.copy_back, args, source.language)
    except KeyboardInterrupt as error:
        interrupted(error, f"{source.name} was compiled or launched")
        raise
    finally:
        arrays.free()
