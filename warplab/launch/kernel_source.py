"""What a kernel is made from, in either language, and how it becomes a PTX entry and the bytes of its parameters."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from warplab import simulator
from warplab.compile import architecture, cuda_signature, numba_compiler, nvrtc, ptx_assembler
from warplab.compile.source_files import label_files, shared_array_names
from warplab.launch import cuda_arguments, numba_arguments
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.errors import ArgumentError
from warplab.launch.launch_record import Assemble

# What `bind` gives: entry, bytes of each parameter, `assemble`.
Bound = tuple[simulator.Entry, list[bytes], Assemble]


class Source(Protocol):
    """What a kernel is made from. Other programs may have compiled it: `grading.stand_ins` has sources of its own.

    `blank`: known to do nothing, since its body is empty. `bind(args, arrays)` compiles it for the arguments and places
    them; it raises ArgumentError for arguments that do not fit, and what the compiler raises.
    """

    @property
    def name(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def blank(self) -> bool: ...

    def bind(self, args: tuple, arrays: ArrayPlacement) -> Bound: ...


@dataclass(frozen=True)
class CudaSource:
    """A kernel of CUDA C++: `entry` is the name of a `__global__` function of `code`, or of a template as "f<float>".

    `options` go to NVRTC; `file` stands for the file in errors and reports; `name_expressions` are further
    names to compile together with `entry`.
    """

    code: str
    entry: str
    options: tuple[str, ...] = ()
    file: str = "kernel.cu"
    name_expressions: tuple[str, ...] = ()
    language: ClassVar[str] = "CUDA C++"
    blank: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.entry

    @property
    def signature(self) -> cuda_signature.Signature | None:
        """As written in the source, None where it is not found there."""
        return _signatures(self.code).get(self.entry.split("<")[0].split("::")[-1].strip())

    @property
    def ptx(self) -> str:
        return _load_cuda(self.code, self.file, self.options, self._expressions())[0]

    def load(self) -> simulator.Entry:
        """The kernel's entry in the simulator's program; the same program for all kernels of one source."""
        _, program, names = _load_cuda(self.code, self.file, self.options, self._expressions())
        entry = program.entries.get(names.get(self.entry, self.entry))
        if entry is None:
            known = ", ".join(sorted(_signatures(self.code))) or "none"
            raise ValueError(f"there is no kernel {self.entry} in {self.file}; its __global__ functions: {known}")
        return entry

    def bind(self, args: tuple, arrays: ArrayPlacement) -> Bound:
        entry = self.load()
        return entry, bind_cuda(self.entry, entry, self.signature, args, arrays), self.assemble

    def assemble(self, arch: int, signature: None = None) -> tuple[str, str]:
        """The assembler's report on machine code for capability `arch` (75 for 7.5), and the kernel's name in it."""
        log, names = nvrtc.assemble_cuda(self.code, self.file, arch, self.options, self._expressions())
        return log, names.get(self.entry, self.entry)

    def _expressions(self) -> tuple[str, ...]:
        expressions = dict.fromkeys(self.name_expressions)
        signature = self.signature
        if signature is not None and not signature.extern_c:
            expressions[self.entry] = None
        return tuple(expressions)


def bind_cuda(
    name: str, entry: simulator.Entry, signature: cuda_signature.Signature | None, args: tuple, arrays: ArrayPlacement
) -> list[bytes]:
    """The bytes of each parameter of a CUDA C++ kernel. `signature`: as its source declares it, where that is known."""
    if signature is None or len(signature.parameters) != len(entry.params):
        unknown = cuda_signature.Parameter("", "", False, None)
        declared = [unknown] * len(entry.params)
        shown = name
    else:
        declared, shown = signature.parameters, str(signature)
    if len(args) != len(entry.params):
        raise ArgumentError(f"kernel {shown} takes {_arguments(len(entry.params))}, {_given(args)}")
    params = []
    for position, (param, parameter, value) in enumerate(zip(entry.params, declared, args, strict=True), 1):
        what = f"argument {position} of kernel {name}"
        if parameter.declaration:
            what += f", `{parameter.declaration}`,"
        params.append(cuda_arguments.pack(what, param, parameter, value, arrays.address))
    return params


class Compiled(NamedTuple):
    """A Python kernel for one tuple of argument types. `ptx` names source files as reports show them."""

    ptx: str
    simulated: simulator.Entry
    program: numba_compiler.NumbaProgram


@dataclass(eq=False)
class PythonSource:
    """A kernel in Python, compiled by Numba once for each tuple of argument types.

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
    compiled: dict[tuple, Compiled] = field(default_factory=dict)
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

    def compile(self, signature: tuple) -> simulator.Entry:
        """The entry for arguments of the Numba types `signature`."""
        if signature not in self.compiled:
            program = self._compile(signature, architecture.DEFAULT_ARCH)
            ptx, sources = label_files(program.ptx, program.texts)
            entry = simulator.load(ptx, sources).entries[program.entry]
            shared = [v.name for dynamic in (False, True) for v in entry.shared_variables(dynamic)]
            entry.source_names = shared_array_names(self.function, shared)
            self.compiled[signature] = Compiled(ptx, entry, program)
        return self.compiled[signature].simulated

    def assemble(self, arch: int, signature: tuple) -> tuple[str, str]:
        """The assembler's report on machine code for capability `arch` (75 for 7.5), and the kernel's name in it."""
        program = self._compile(signature, arch)
        return ptx_assembler.assemble_ptx(program.ptx, arch, self.max_registers), program.entry

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

    def signature_of(self, args: tuple) -> tuple:
        """Numba types that the kernel is compiled for when it is given `args`. Raises ArgumentError."""
        return numba_signature(self.name, self.parameters, self.signatures, args)

    def bind(self, args: tuple, arrays: ArrayPlacement) -> Bound:
        signature = self.signature_of(args)
        entry = self.compile(signature)
        params = bind_numba(self.parameters, signature, args, arrays)
        return entry, params, functools.partial(self.assemble, signature=signature)


def numba_signature(name: str, names: list[str], signatures: list[tuple] | None, args: tuple) -> tuple:
    """Numba types that a kernel of the parameters `names` is compiled for when it is given `args`.

    `signatures`: the explicit ones, if it has any. Raises ArgumentError.
    """
    if len(args) != len(names):
        raise ArgumentError(f"kernel {name}({', '.join(names)}) takes {_arguments(len(names))}, {_given(args)}")
    signature = numba_arguments.types_of(name, names, args)
    return signature if signatures is None else numba_arguments.match_signature(name, names, signature, signatures)


def bind_numba(names: list[str], signature: tuple, args: tuple, arrays: ArrayPlacement) -> list[bytes]:
    """The bytes of each PTX parameter of a Numba kernel that was compiled for `signature`."""
    params = []
    for name, kind, value in zip(names, signature, args, strict=True):
        params += numba_arguments.pack(kind, value, functools.partial(arrays.address, name=name))
    return params


def is_empty(function: Callable) -> bool:
    """Whether the body of a Python function does nothing."""

    def empty():
        pass

    def operations(f: Callable) -> list[str]:
        return [instruction.opname for instruction in dis.get_instructions(f)]

    try:
        return operations(function) == operations(empty)
    except TypeError:  # a callable without Python code
        return False


def source_of(kernel) -> Source:
    """What `kernel` was made from."""
    if isinstance(kernel, CudaSource | PythonSource):
        return kernel
    source = getattr(kernel, "_warplab_source", None)
    if source is not None:
        return source
    if isinstance(kernel, types.FunctionType):
        return _python_source(kernel)
    options = getattr(kernel, "targetoptions", None)
    if options is not None and hasattr(kernel, "py_func"):  # numba.cuda's own dispatcher
        if options.get("device"):
            raise TypeError(f"{kernel.__name__} is a device function: only a kernel can be launched")
        return _python_source(
            kernel.py_func,
            fastmath=bool(options.get("fastmath")),
            opt=bool(options.get("opt", True)),
            launch_bounds=options.get("launch_bounds"),
            debug=bool(options.get("debug")),
            link=tuple(options.get("link", ())),
            max_registers=options.get("max_registers"),
        )
    if isinstance(getattr(kernel, "code", None), str) and isinstance(getattr(kernel, "name", None), str):
        return CudaSource(kernel.code, kernel.name, tuple(kernel.options))  # cupy.RawKernel
    raise TypeError(
        f"{kernel!r} is not a kernel: give a function decorated with @cuda.jit, a CuPy RawKernel with its source, "
        "a kernel of a %%cuda cell or a CudaSource (without [grid, block])"
    )


@functools.lru_cache(maxsize=256)
def _load_cuda(code: str, file: str, options: tuple[str, ...], expressions: tuple[str, ...]):
    compiled = nvrtc.compile_cuda_program(code, file, options=options, name_expressions=expressions)
    ptx, sources = label_files(compiled.ptx, {file: code})
    return ptx, simulator.load(ptx, sources), compiled.names


_signatures = functools.lru_cache(maxsize=256)(cuda_signature.kernels)


def _python_source(function: Callable, **options) -> PythonSource:
    # Kept on the function, so that both go away together.
    variants = function.__dict__.setdefault("_warplab_sources", {})
    key = (function, *sorted(options.items()))
    if key not in variants:
        variants[key] = PythonSource(function, **options)
    return variants[key]


def _arguments(number: int) -> str:
    return f"{number} argument{'s' * (number != 1)}"


def _given(args: tuple) -> str:
    return f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
