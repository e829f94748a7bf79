"""`RawKernel` and `RawModule`: CuPy's kernels of CUDA C++ on the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from warplab import simulator
from warplab.compile import cuda_signature
from warplab.dropin.cupy._core.core import ndarray
from warplab.dropin.cupy.cuda.memory import MemoryPointer
from warplab.dropin.simulated_device import check_dynamic_bytes
from warplab.launch import profiling
from warplab.launch.device_arrays import Buffer, DeviceArray
from warplab.launch.errors import ArgumentError, CallError, NoKernel, launch_of_cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run.launch_limits import MAX_THREADS


class RawKernel:
    """A `__global__` function: `kernel(grid, block, args, shared_mem=0)`. Compiled at its first use."""

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ) -> None:
        _check_type("code", code, str)
        _check_type("name", name, str)
        _check_options(options, backend)
        self._warplab_source = CudaSource(code, name, options, by_cupy=True)
        self.backend = backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.max_dynamic_shared_size_bytes: int | None = None  # 48 KiB, less what is static
        self.__name__ = name

    @classmethod
    def _of(cls, source: CudaSource, cooperative: bool = False) -> RawKernel:
        kernel = cls(source.code, source.entry, source.options, enable_cooperative_groups=cooperative)
        kernel._warplab_source = source
        return kernel

    @property
    def code(self) -> str:
        return self._warplab_source.code

    @property
    def name(self) -> str:
        return self._warplab_source.entry

    @property
    def options(self) -> tuple[str, ...]:
        return self._warplab_source.options

    @property
    def ptx(self) -> str:
        """Return the PTX that the kernel is compiled to, which CuPy's own kernels do not show."""
        return self._warplab_source.ptx

    def compile(self, log_stream=None) -> None:
        """Compile now. Raises CompileError, which shows the line."""
        _check_name(self._warplab_source)
        self._warplab_source.load()

    def __getitem__(self, configuration):
        raise CallError(launch_of_cuda(self.name))

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...] = (),
        args: tuple | None = None,
        *more,
        shared_mem: int = 0,
        stream=None,
    ) -> None:
        """Run the kernel. `grid`, `block`: tuples of one to three ints; `shared_mem`: bytes per block."""
        if not block or args is None or more:
            raise CallError(launch_of_cuda(self.name))
        _check_type("grid", grid, tuple)
        _check_type("block", block, tuple)
        if not isinstance(args, tuple | list):
            raise ArgumentError(f"args must be a tuple, not {type(args).__name__}; write (x,) for one argument")
        for arg in args:
            _check_argument(arg)
        self.compile()
        how = f"kernel.max_dynamic_shared_size_bytes = {shared_mem}"
        check_dynamic_bytes(shared_mem, self.shared_size_bytes, self.max_dynamic_shared_size_bytes, how)
        launch = simulate(
            self,
            tuple(max(1, n) for n in grid),  # CuPy does this, too
            tuple(max(1, n) for n in block),
            tuple(args),
            shared_bytes=shared_mem,
            cooperative=self.enable_cooperative_groups,
            counters=profiling.active(),
        )
        profiling.record(launch)

    @property
    def shared_size_bytes(self) -> int:
        """Return bytes of static shared memory per block."""
        return self._warplab_source.load().shared_bytes

    @property
    def max_threads_per_block(self) -> int:
        return MAX_THREADS

    def __repr__(self) -> str:
        return f"<RawKernel {self._warplab_source.signature or self.name} on the PTX simulator>"


class RawModule:
    """CUDA C++ source with several kernels. `get_function(name)` returns one as a `RawKernel`.

    `name_expressions` names what C++ mangles: kernels without extern "C", and instances of templates ("f<float>").
    """

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions=None,
        jitify: bool | None = None,
    ) -> None:
        if path is not None and code is None:
            raise NotImplementedError(
                f"RawModule(path={path!r}) loads compiled code, which holds no source to simulate; "
                f"give the source, RawModule(code=Path({str(Path(path).with_suffix('.cu'))!r}).read_text())"
            )
        if code is None or path is not None:
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        _check_type("code", code, str)
        _check_options(options, backend)
        self.code, self.options, self.backend = code, options, backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        self._file = "kernel.cu"

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel `name`, an extern "C" function or one of the name expressions. Raises NoKernel."""
        source = CudaSource(self.code, name, self.options, self._file, self.name_expressions or (), by_cupy=True)
        kernel = RawKernel._of(source, self.enable_cooperative_groups)
        kernel.compile()
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Return a pointer to a `__device__` or `__constant__` variable, for `cp.ndarray(shape, dtype, pointer)`."""
        functions = cuda_signature.kernels(self.code)
        plain = (n for n, s in functions.items() if not s.template)
        first = next(plain, None) or next(iter(self.name_expressions or ()), None)
        if first is None:
            raise ValueError("the module has no kernel that could use a variable")
        source = CudaSource(self.code, first, self.options, self._file, self.name_expressions or (), by_cupy=True)
        program = source.load().program
        if name not in program.variables:
            raise ValueError(
                f'no kernel of the module uses a variable {name} (C++ mangles its name unless it is in extern "C")'
            )
        device = simulator.default_device()
        address = device.variable_address(program, name)
        return MemoryPointer(_Variable(device, address, program.variables[name].size), address)

    def compile(self, log_stream=None) -> None:
        """Compile now. Raises CompileError, which shows the line."""
        from warplab.compile.nvrtc import compile_cuda_program

        options = CudaSource(self.code, "", self.options, by_cupy=True).compiler_options
        compile_cuda_program(self.code, self._file, options=options, name_expressions=self.name_expressions or ())


class _Variable(Buffer):
    """The memory of a variable, which belongs to its module."""

    def __init__(self, device: simulator.Device, address: int, nbytes: int) -> None:
        self.device, self.address, self.nbytes = device, address, nbytes
        self.bytes = device.memory.view(address, nbytes)


def _check_type(name: str, value, kind: type) -> None:
    # CuPy's wording, which comes from Cython.
    if not isinstance(value, kind):
        hint = f": write ({value},)" if kind is tuple and isinstance(value, int | np.integer) else ""
        raise ArgumentError(
            f"Argument '{name}' has incorrect type (expected {kind.__name__}, got {type(value).__name__}){hint}"
        )


def _check_options(options, backend: str) -> None:
    _check_type("options", options, tuple)
    if backend != "nvrtc":
        raise NotImplementedError(
            f"backend={backend!r} is not on the simulator, which compiles with NVRTC; leave it out"
        )


def _check_name(source: CudaSource) -> None:
    signature = source.signature
    if signature is None or signature.extern_c or source.entry in source.name_expressions:
        return
    raise NoKernel(
        f"no symbol {source.entry} in the compiled code; C++ mangles the names of kernels. Write "
        f'extern "C" __global__ void {signature.name}(...), or RawModule(..., name_expressions=["{source.entry}"])'
    )


def _check_argument(value) -> None:
    if isinstance(value, np.ndarray) and value.size != 1:
        raise ArgumentError(
            f"a numpy.ndarray of shape {value.shape} was given to a kernel, which reads device memory only; give a "
            "cupy.ndarray, made with cp.asarray(...). (A numpy.ndarray of size one is passed by value.)"
        )
    if isinstance(value, DeviceArray) and not isinstance(value, ndarray):
        raise ArgumentError(
            f"Unsupported type {type(value)}; make a CuPy array from it with cp.asarray(...), which does not copy"
        )
