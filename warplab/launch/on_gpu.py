"""Profiles on a GPU: hooks by which `warplab.profile()` sees the launches of numba.cuda and of CuPy's raw kernels.

Inside a profile a launch is first simulated on copies of its arguments, for the counters; of a large launch the
simulator runs a sample of the blocks. An error that it finds is raised before it can harm the GPU's context. Then the
launch runs on the GPU, timed with events.
Outside a profile a launch costs one more function call.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from warplab.compile.errors import CompileError
from warplab.launch import profiling
from warplab.launch.array_placement import host_array
from warplab.launch.dimensions import dimensions
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import CudaSource, source_of
from warplab.launch.launch_record import LaunchRecord
from warplab.launch.simulate import simulate
from warplab.launch.stream_delay import hold_stream
from warplab.simulator import InstructionLimit, UnsupportedInstruction

# What the simulator counts in some seconds. Of a larger launch it runs a sample of the blocks. A launch is timed but
# not counted if its arguments, all of which are copied, are larger than MAX_BYTES or if its sample takes too long.
MAX_THREADS = 1 << 22
MAX_INSTRUCTIONS = 1 << 31  # thread instructions
MAX_BYTES = 1 << 31
SAMPLES = (1 << 18, 1 << 13)  # threads; the second where the first takes too many instructions
HOLD_SECONDS = 2e-3  # longer than the host takes to launch a kernel that is compiled but not yet loaded


@functools.cache
def install() -> None:
    """Put the hooks in place, once per process."""
    import cupy
    import numba.cuda.random  # noqa: F401 - so that `cuda.random` is there, as on the simulator

    from warplab.compile.numba_internals import CUDADispatcher, config, launch_kernel

    # The course's first launches are small on purpose; Numba would warn about each on stderr.
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    setattr(CUDADispatcher, "call", _numba_hook(launch_kernel))  # noqa: B010 - a method in another's class
    cupy.RawKernel, cupy.RawModule = _cupy_classes()


def _numba_hook(original: Callable) -> Callable:
    @functools.wraps(original)
    def call(self, args, launch_config):
        if not profiling.active():
            return original(self, args, launch_config)
        with profiling.paused() as record:
            record(*_profile_numba(original, self, args, launch_config))

    return call


def _profile_numba(original: Callable, dispatcher, args: tuple, launch_config) -> tuple[LaunchRecord, str | None]:
    from numba import cuda

    from warplab.compile.numba_internals import can_compile

    grid, block = launch_config.griddim, launch_config.blockdim
    profile, note = _simulate(dispatcher, grid, block, args, launch_config.sharedmem)
    if not dispatcher.specialized and can_compile(dispatcher):
        dispatcher.compile(tuple(map(dispatcher.typeof_pyval, args)))  # compiling is not part of the time
    # Host arrays are copied before and after the timed launch; Numba would copy them within it.
    copies = {id(a): cuda.to_device(a) for a in args if type(a) is np.ndarray}
    on_device = tuple(copies.get(id(a), a) for a in args)
    _time(profile, _cupy_stream(launch_config.stream), lambda: original(dispatcher, on_device, launch_config))
    for array in args:
        if id(array) in copies and array.flags.writeable:
            copies[id(array)].copy_to_host(array)
    return profile, note


@functools.cache
def _cupy_classes() -> tuple[type, type]:
    """Make subclasses of CuPy's RawKernel and RawModule that know their source and have the hook."""
    import cupy

    class RawKernel(cupy.RawKernel):
        _file = "kernel.cu"
        _expression = None  # the name asked of a module, before C++ mangled it
        _expressions = ()

        @property
        def _warplab_source(self) -> CudaSource:
            name = self._expression or self.name
            return CudaSource(self.code, name, self.options, self._file, self._expressions, by_cupy=True)

        @property
        def ptx(self) -> str:
            return self._warplab_source.ptx

        def __call__(self, grid, block, args, **kwargs):
            if not profiling.active():
                return super().__call__(grid, block, args, **kwargs)
            with profiling.paused() as record:
                profile, note = _simulate(self, grid, block, tuple(args), kwargs.get("shared_mem", 0))
                self.kernel  # noqa: B018 - compiles and loads, which is not part of the time
                stream = kwargs.get("stream") or cupy.cuda.get_current_stream()
                launch = functools.partial(super().__call__, grid, block, args, **kwargs)
                _time(profile, stream, launch)
                record(profile, note)

    class RawModule(cupy.RawModule):
        _file = "kernel.cu"

        def get_function(self, name):
            made = super().get_function(name)
            kernel = RawKernel.__new__(RawKernel)
            kernel.__setstate__(made.__getstate__())  # as CuPy copies a kernel: RawKernel's fields are not writable
            kernel._file, kernel._expression = self._file, name
            kernel._expressions = tuple(self.name_expressions or ())
            return kernel

    RawKernel.__doc__, RawModule.__doc__ = cupy.RawKernel.__doc__, cupy.RawModule.__doc__
    return RawKernel, RawModule


class InSimulator:
    """A kernel that this GPU lacks instructions for: called like CuPy's, it is simulated on copies of its arrays, which
    then get what it wrote."""

    def __init__(self, source: CudaSource) -> None:
        self._warplab_source = source

    def __call__(self, grid, block, args, *, shared_mem: int = 0) -> None:
        """Run a launch, and record it in profiles, without a time. Raises SimulatorError for what it does wrong."""
        copies = {id(a): host_array(a) for a in args if hasattr(a, "__cuda_array_interface__")}
        given = tuple(copies.get(id(a), a) for a in args)
        profiling.record(simulate(self, grid, block, given, shared_bytes=shared_mem, counters=profiling.active()))
        for array in args:
            if id(array) in copies:
                array.set(copies[id(array)])


def _simulate(kernel, grid, block, args: tuple, shared_bytes: int) -> tuple[LaunchRecord, str | None]:
    """Return the launch as the simulator counts it, or without counters and with a note that says why."""
    name = source_of(kernel).name
    grid, block = dimensions(grid, "grid"), dimensions(block, "block")
    blocks, of_block = math.prod(grid), math.prod(block)
    samples = [n for n in (max(8, threads // of_block) for threads in SAMPLES) if n < blocks]
    nbytes = sum(getattr(a, "nbytes", 0) for a in args)
    try:
        if nbytes > MAX_BYTES:
            raise _NotCounted(f"{nbytes:,} bytes of arguments; up to {MAX_BYTES:,} bytes are simulated")
        for sample in samples if blocks * of_block > MAX_THREADS else [None, *samples]:
            try:
                return _counted(kernel, grid, block, args, shared_bytes, sample), None
            except InstructionLimit as error:
                if error.one_path:
                    raise _NotCounted(error.what) from error
        raise _NotCounted(f"even the smallest sample of its blocks takes more than {MAX_INSTRUCTIONS:,} instructions")
    except (_NotCounted, UnsupportedInstruction, NotImplementedError, ArgumentError, CompileError) as error:
        reason = str(error).splitlines()[0]
    return LaunchRecord(name, grid, block), f"{name} was timed but not counted: {reason}"


class _NotCounted(Exception):
    pass


def _counted(kernel, grid, block, args: tuple, shared_bytes: int, sample_blocks: int | None) -> LaunchRecord:
    """Simulate the launch, or a sample of its blocks, on copies of the arrays."""
    copies: dict[int, np.ndarray] = {}
    for array in args:
        if hasattr(array, "__cuda_array_interface__"):
            copies[id(array)] = host_array(array)
        elif isinstance(array, np.ndarray):
            copies[id(array)] = array.copy("K")
    return simulate(
        kernel,
        grid,
        block,
        tuple(copies.get(id(a), a) for a in args),
        shared_bytes=shared_bytes,
        instruction_limit=MAX_INSTRUCTIONS,
        sample_blocks=sample_blocks,
    )


def _cupy_stream(stream):
    """Return CuPy's object for a stream of cuda.core, which is what Numba launches into."""
    import cupy

    return cupy.cuda.Stream.from_external(stream) if int(stream.handle) else cupy.cuda.Stream.null


def _time(profile: LaunchRecord, stream, launch: Callable[[], None]) -> None:
    """Launch between two events and note the time between them.

    The stream is kept busy while the host queues events and launch, so that the time is the GPU's alone.
    """
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    with stream:
        hold_stream(HOLD_SECONDS)
        start.record()
        launch()
        end.record()
        end.synchronize()
        device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    profile.gpu_seconds = cupy.cuda.get_elapsed_time(start, end) / 1e3
    profile.gpu_name = device["name"].decode()
