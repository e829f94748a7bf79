"""What a kernel is made from, in either language, and how it is compiled for the arguments of a launch."""

import dis
import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from warplab import simulator
from warplab.compile import cuda_signature, numba_compiler, nvrtc, ptx_assembler
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.headers import COURSE_HEADERS
from warplab.compile.ptx_assembler import Assembled
from warplab.compile.source_files import label_files, path_of, shared_array_names
from warplab.launch import cuda_arguments, numba_arguments
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.errors import NoKernel
from warplab.launch.launch_record import Assemble
from warplab.simulator.run.device import launching


class BoundKernel(NamedTuple):
    """A kernel compiled for the arguments of a launch. `params`: the bytes of each parameter of `entry`.

    `raised`: maps the number that a kernel of `cuda.jit(debug=True)` leaves behind to the exception it raised (class,
    arguments, place); None for other kernels. `max_registers`: per thread, None for no limit.
    """

    entry: simulator.Entry
    params: list[bytes]
    assemble: Assemble
    raised: Callable[[int], tuple] | None = None
    max_registers: int | None = None


class KernelSource(Protocol):
    """What a kernel is made from: a `CudaSource`, a `NumbaSource`, or a compiled kernel that grading was given.

    `blank`: whether its body is known to be empty. `bind(args, arrays)` compiles it for the arguments and places them;
    `assembler(args)` returns what translates it to machine code for such arguments. Both raise ArgumentError for
    arguments that do not fit, and what the compiler raises.
    """

    @property
    def name(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def blank(self) -> bool: ...

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel: ...

    def assembler(self, args: tuple) -> Assemble: ...


# What cupy.cuda.compiler._compile_with_cache_cuda gives to every kernel, with this project's headers for CuPy's.
_BY_CUPY = ("-ftz=true", f"-I{COURSE_HEADERS}")


@dataclass(frozen=True)
class CudaSource:
    """A kernel of CUDA C++. `entry`: the name of a `__global__` function of `code`, or of a template as "f<float>".

    `options` go to NVRTC; `file` names the file in errors and reports; `name_expressions` are further names to compile
    together with `entry`. `by_cupy`: as CuPy compiles every kernel, with -ftz=true: float32 instructions take and give
    zeros in place of subnormal numbers.
    """

    code: str
    entry: str
    options: tuple[str, ...] = ()
    file: str = "kernel.cu"
    name_expressions: tuple[str, ...] = ()
    by_cupy: bool = False
    language: ClassVar[str] = "CUDA C++"
    blank: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.entry

    @property
    def signature(self) -> cuda_signature.Signature | None:
        """Return the kernel's declaration as written; None where the source has none of that name."""
        return _signatures(self.code).get(self.entry.split("<")[0].split("::")[-1].strip())

    @property
    def compiler_options(self) -> tuple[str, ...]:
        """Return all that NVRTC is given."""
        if not self.by_cupy:
            return self.options
        own = self.options
        if "<cupy/" in self.code:  # complex numbers are libcu++'s, which needs C++17
            own = tuple(re.sub(r"^(--?std=c\+\+)(03|11|14)$", r"\g<1>17", option) for option in own)
        return (*own, *_BY_CUPY)

    @property
    def ptx(self) -> str:
        return _load_cuda(self.code, self.file, self.compiler_options, self._expressions())[0]

    def load(self) -> simulator.Entry:
        """Return the kernel's entry in the simulator's program, which all kernels of one source share."""
        _, program, names = _load_cuda(self.code, self.file, self.compiler_options, self._expressions())
        entry = program.entries.get(names.get(self.entry, self.entry))
        if entry is None:
            known = ", ".join(sorted(_signatures(self.code))) or "none"
            raise NoKernel(f"there is no kernel {self.entry} in {self.file}; its __global__ functions: {known}")
        return entry

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        entry = self.load()
        params = cuda_arguments.pack_arguments(self.entry, entry, self.signature, args, arrays.address)
        return BoundKernel(entry, params, self.assemble, max_registers=self.max_registers)

    @property
    def max_registers(self) -> int | None:
        """Return the limit of registers per thread that the options set."""
        found = [re.fullmatch(r"--?maxrregcount[= ](\d+)", option) for option in self.options]
        return next((int(match[1]) for match in found if match), None)

    def assembler(self, args: tuple) -> Assemble:
        return self.assemble

    def assemble(self, arch: int) -> Assembled:
        """Return machine code for capability `arch` (75 for 7.5), with the assembler's report."""
        log, cubin, names = nvrtc.assemble_cuda(self.code, self.file, arch, self.compiler_options, self._expressions())
        return Assembled(log, names.get(self.entry, self.entry), cubin)

    def _expressions(self) -> tuple[str, ...]:
        expressions = dict.fromkeys(self.name_expressions)
        signature = self.signature
        if signature is not None and not signature.extern_c:
            expressions[self.entry] = None
        return tuple(expressions)


@dataclass(frozen=True)
class PtxSource:
    """A kernel in PTX, whoever compiled it. `name`: of its entry, which may be left out of one. Structs take a NumPy
    array of one record. Raises NoKernel for an entry that is not there, UnsupportedInstruction."""

    ptx: str
    name: str = ""
    language: ClassVar[str] = "PTX"
    blank: ClassVar[bool] = False

    def __post_init__(self) -> None:
        known = list(_load_ptx(self.ptx).entries)
        if not self.name and len(known) == 1:
            object.__setattr__(self, "name", known[0])
        if self.name not in known:
            raise NoKernel(f"there is no kernel {self.name!r} in this PTX; its entries: {', '.join(known) or 'none'}")

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        entry = _load_ptx(self.ptx).entries[self.name]
        params = cuda_arguments.pack_arguments(self.name, entry, None, args, arrays.address)
        return BoundKernel(entry, params, self.assemble)

    def assembler(self, args: tuple) -> Assemble:
        return self.assemble

    def assemble(self, arch: int) -> Assembled:
        """Return machine code for capability `arch` (75 for 7.5), with the assembler's report."""
        target = _load_ptx(self.ptx).target.removeprefix("sm_")  # as 90a, whose PTX is for that alone
        return ptx_assembler.assemble(self.ptx, self.name, target if target.startswith(str(arch)) else arch)


class Specialization(NamedTuple):
    """A Python kernel compiled for one tuple of argument types. `ptx` names source files as reports show them."""

    ptx: str
    entry: simulator.Entry
    program: numba_compiler.NumbaProgram


@dataclass(eq=False)
class NumbaSource:
    """A kernel in Python, which Numba compiles once for each tuple of argument types.

    `signatures`: explicit tuples of Numba types, None to compile for whatever comes. The rest are options of
    `cuda.jit`.
    """

    function: Callable
    signatures: list[tuple] | None = None
    fastmath: bool = False
    opt: bool = True
    launch_bounds: int | tuple[int, ...] | None = None
    debug: bool = False
    link: tuple = ()
    max_registers: int | None = None
    specializations: dict[tuple, Specialization] = field(default_factory=dict)
    language: ClassVar[str] = "Numba"

    @property
    def blank(self) -> bool:
        return is_empty(self.function)

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def parameters(self) -> list[str]:
        return list(inspect.signature(self.function).parameters)

    def compile(self, signature: tuple) -> Specialization:
        """Return the kernel for arguments of the Numba types `signature`, compiled at the first call."""
        with launching:
            found = self.specializations.get(signature)
            return self.adopt(signature, self._compile(signature, DEFAULT_ARCH)) if found is None else found

    def adopt(self, signature: tuple, program: numba_compiler.NumbaProgram) -> Specialization:
        """Keep `program`, which was compiled for arguments of the Numba types `signature`, and return the kernel."""
        ptx, sources = label_files(program.ptx, program.texts)
        entry = simulator.load(ptx, sources).entries[program.entry]
        shared = [v.name for dynamic in (False, True) for v in entry.shared_variables(dynamic)]
        entry.source_names = shared_array_names(self.function, shared)
        self.specializations[signature] = Specialization(ptx, entry, program)
        return self.specializations[signature]

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        signature = self.signature_of(args)
        found = self.compile(signature)
        params = numba_arguments.pack_arguments(self.parameters, signature, args, arrays.address)
        assemble = functools.partial(self.assemble, signature=signature)
        exceptions = found.program.exceptions if self.debug else None
        return BoundKernel(found.entry, params, assemble, exceptions, self.max_registers)

    def assembler(self, args: tuple) -> Assemble:
        return functools.partial(self.assemble, signature=self.signature_of(args))

    def assemble(self, arch: int, signature: tuple) -> Assembled:
        """Return machine code for capability `arch` (75 for 7.5), with the assembler's report."""
        program = self._compile(signature, arch)
        return ptx_assembler.assemble(program.ptx, program.entry, arch, self.max_registers)

    def signature_of(self, args: tuple) -> tuple:
        """Return the Numba types that the kernel is compiled for when it is given `args`. Raises ArgumentError."""
        return numba_arguments.signature_of(self.name, self.parameters, self.signatures, args)

    def _compile(self, signature: tuple, arch: int) -> numba_compiler.NumbaProgram:
        return numba_compiler.compile_numba_program(
            self.function,
            signature,
            arch,
            fastmath=self.fastmath,
            opt=self.opt,
            launch_bounds=self.launch_bounds,
            debug=self.debug,
            link=self.link,
        )


def is_empty(function: Callable) -> bool:
    """Return whether the body of a Python function does nothing."""

    def empty():
        pass

    def operations(f: Callable) -> list[str]:
        return [instruction.opname for instruction in dis.get_instructions(f)]

    try:
        return operations(function) == operations(empty)
    except TypeError:  # a callable without Python code
        return False


def source_of(kernel) -> KernelSource:
    """Return what `kernel` was made from. Raises TypeError for what is no kernel."""
    if isinstance(kernel, CudaSource | NumbaSource | PtxSource):
        return kernel
    source = getattr(kernel, "_warplab_source", None)
    if source is not None:
        return source
    if isinstance(kernel, types.FunctionType):
        return _numba_source(kernel)
    options = getattr(kernel, "targetoptions", None)
    if options is not None and hasattr(kernel, "py_func"):  # numba.cuda's own dispatcher
        if options.get("device"):
            raise TypeError(f"{kernel.__name__} is a device function; launch a kernel that calls it")
        return _numba_source(
            kernel.py_func,
            fastmath=bool(options.get("fastmath")),
            opt=bool(options.get("opt", True)),
            launch_bounds=options.get("launch_bounds"),
            debug=bool(options.get("debug")),
            link=tuple(options.get("link", ())),
            max_registers=options.get("max_registers"),
        )
    if isinstance(getattr(kernel, "code", None), str) and isinstance(getattr(kernel, "name", None), str):
        return CudaSource(kernel.code, kernel.name, tuple(kernel.options), by_cupy=True)  # cupy.RawKernel
    raise TypeError(
        f"{kernel!r} is not a kernel: give a function decorated with @cuda.jit, a CuPy RawKernel with its source, "
        "a kernel of a %%cuda cell or a CudaSource (without [grid, block])"
    )


def is_source(source: KernelSource, texts: Mapping[str, str]) -> bool:
    """Return whether `source` may be what a kernel was made from whose files have these texts, by label."""
    code, function = getattr(source, "code", None), getattr(source, "function", None)
    if code is not None:
        return code in texts.values()
    return function is None or inspect.getfile(function) in {path_of(*file) for file in texts.items()}


def _load_ptx(ptx: str) -> simulator.Program:
    with launching:  # as for _load_cuda
        return _loaded_ptx(ptx)


@functools.lru_cache(maxsize=256)
def _loaded_ptx(ptx: str) -> simulator.Program:
    return simulator.load(*label_files(ptx))


def _load_cuda(code: str, file: str, options: tuple[str, ...], expressions: tuple[str, ...]):
    with launching:  # two threads must not get two programs, each with variables of its own
        return _loaded_cuda(code, file, options, expressions)


@functools.lru_cache(maxsize=256)
def _loaded_cuda(code: str, file: str, options: tuple[str, ...], expressions: tuple[str, ...]):
    compiled = nvrtc.compile_cuda_program(code, file, options=options, name_expressions=expressions)
    ptx, sources = label_files(compiled.ptx, {file: code})
    return ptx, simulator.load(ptx, sources), compiled.names


_signatures = functools.lru_cache(maxsize=256)(cuda_signature.kernels)


def _numba_source(function: Callable, **options) -> NumbaSource:
    # Kept on the function, so that both are freed together.
    variants = function.__dict__.setdefault("_warplab_sources", {})
    return variants.setdefault((function, *sorted(options.items())), NumbaSource(function, **options))
