"""CUDA C++ and Python kernels to PTX (or a cubin), by NVIDIA's own compilers; no GPU and no CUDA toolkit needed.

NVRTC compiles CUDA C++, Numba with NVVM compiles Python. Both come as pip packages, and so do the headers.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType

from warplab.compile import linked_code, ptx_linking
from warplab.compile.errors import short_traceback

DEFAULT_ARCH = 90
MOST_ERRORS = 3  # shown of one compilation; the first one often causes the others

_HINTS = (
    (
        re.compile(r'cannot open source file "(c?std\w*(\.h)?|c?math(\.h)?|iostream|vector|string|cassert|assert\.h)"'),
        "NVRTC compiles device code only and knows no host headers: printf, assert and the math functions need "
        "no #include; fixed-width integers are in <cuda/std/cstdint>.",
    ),
    (
        re.compile(r"function without execution space annotations"),
        "A function that a kernel calls is declared with __device__ in front; a kernel with __global__.",
    ),
    (
        re.compile(r'no instance of overloaded function "(load|store)_matrix_sync"'),
        "A fragment and the memory that it is loaded from or stored to have one type (half and half*, float and "
        "float*), and the pointer is to the first element: of half tile[16][16] that is &tile[0][0]. A fragment of "
        "sums needs mem_row_major or mem_col_major as the last argument, others do not take it.",
    ),
)


class CompileError(RuntimeError):
    """CUDA C++ that does not compile. `log`: NVRTC's whole log. `str(error)` shows file, line, source and caret."""

    _render_traceback_ = short_traceback

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(_readable(log) + "".join(f"\n{hint}" for pattern, hint in _HINTS if pattern.search(log)))


class CompilerNotFound(RuntimeError):
    """A compiler package is missing or does not load."""


@dataclass(frozen=True)
class CudaProgram:
    """Compiled CUDA C++. `names`: the entry's name in PTX for each name expression; `log`: the compiler's warnings."""

    ptx: str
    names: dict[str, str] = field(default_factory=dict)
    log: str = ""


def compile_cuda(source: str, name: str = "kernel.cu", arch: int = DEFAULT_ARCH, options: tuple[str, ...] = ()) -> str:
    """PTX of CUDA C++ `source`, with line information. `name` stands for the file in errors and reports.

    `options`: further NVRTC options, such as "-DTILE=16" or "--use_fast_math". Raises CompileError.
    """
    return compile_cuda_program(source, name, arch, tuple(options)).ptx


@functools.lru_cache(maxsize=256)
def compile_cuda_program(
    source: str,
    name: str = "kernel.cu",
    arch: int = DEFAULT_ARCH,
    options: tuple[str, ...] = (),
    name_expressions: tuple[str, ...] = (),
) -> CudaProgram:
    """Like `compile_cuda`; also instantiates templates: each name expression ("scale<float>") becomes an entry."""
    with _nvrtc_program(source, name, name_expressions) as program:
        log = program.compile(_options(f"compute_{arch}", options))
        ptx = program.output("PTX").decode()
        names = {expression: program.lowered_name(expression) for expression in name_expressions}
    return CudaProgram(_short_file_name(ptx, name), names, _readable(log))


@functools.lru_cache(maxsize=64)
def compile_cubin(
    source: str, name: str = "kernel.cu", arch: int = DEFAULT_ARCH, options: tuple[str, ...] = ()
) -> bytes:
    """Machine code for compute capability `arch`: a driver that is older than the compiler loads it, unlike PTX."""
    with _nvrtc_program(source, name, ()) as program:
        program.compile(_options(f"sm_{arch}", tuple(options)))
        return program.output("CUBIN")


@functools.lru_cache(maxsize=256)
def assemble_cuda(
    source: str, name: str, arch: int, options: tuple[str, ...] = (), name_expressions: tuple[str, ...] = ()
) -> tuple[str, dict[str, str]]:
    """NVRTC's report (`--ptxas-options=-v`) on machine code of CUDA C++, and the names of `name_expressions` in it."""
    given = [option for option in _options(f"sm_{arch}", options) if not re.match("--?(gpu-)?arch", option)]
    with _nvrtc_program(source, name, name_expressions) as program:
        # From its cache NVRTC would give no report.
        log = program.compile([*given, f"--gpu-architecture=sm_{arch}", "--ptxas-options=-v", "--no-cache"])
        return log, {expression: program.lowered_name(expression) for expression in name_expressions}


@functools.lru_cache(maxsize=256)
def assemble_ptx(ptx: str, arch: int, max_registers: int | None = None) -> str:
    """nvJitLink's report on machine code of PTX. Raises RuntimeError for PTX that it refuses.

    `max_registers`: the assembler's limit for a thread.
    """
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except Exception as error:  # a missing shared library raises classes of cuda.pathfinder
        raise CompilerNotFound(
            f"nvJitLink, which assembles PTX, does not load ({error}); `python -m warplab doctor` says what is missing"
        ) from error

    def text(kind: str) -> str:
        buffer = bytearray(getattr(nvjitlink, f"get_{kind}_log_size")(handle))
        getattr(nvjitlink, f"get_{kind}_log")(handle, buffer)
        return buffer.decode(errors="replace").strip("\0 \n")

    data = ptx.encode()
    # From its cache nvJitLink gives half a report.
    arguments = [f"-arch=sm_{arch}", "-verbose", "-no-cache"]
    if max_registers is not None:
        arguments.append(f"-maxrregcount={max_registers}")
    handle = nvjitlink.create(len(arguments), arguments)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel.ptx")
        nvjitlink.complete(handle)
        return text("info")
    except nvjitlink.nvJitLinkError as error:
        raise RuntimeError(f"the kernel could not be assembled for sm_{arch}: {text('error') or error}") from error
    finally:
        nvjitlink.destroy(handle)


def compile_numba(function: Callable, signature: tuple, arch: int = DEFAULT_ARCH, **options) -> tuple[str, str]:
    """PTX with line information of a Python kernel, and the name of its entry in it; see `compile_numba_program`."""
    program = compile_numba_program(function, signature, arch, **options)
    return program.ptx, program.entry


@dataclass(frozen=True)
class NumbaProgram:
    """A compiled Python kernel. `entry`: its name in `ptx`. `texts`: of linked CUDA C++ that is in no file, by name.

    `library`, `annotation`: Numba's own, with the LLVM code and the types of the variables. `exceptions`: finds what
    a debug kernel raised, by its number.
    """

    ptx: str
    entry: str
    texts: dict[str, str]
    library: object
    annotation: object
    exceptions: Callable[[int], tuple]


def compile_numba_program(
    function: Callable,
    signature: tuple,
    arch: int = DEFAULT_ARCH,
    *,
    fastmath: bool = False,
    opt: bool = True,
    launch_bounds: int | tuple[int, ...] | None = None,
    debug: bool = False,
    link: tuple = (),
) -> NumbaProgram:
    """A Python kernel as `numba.cuda` compiles it for capability `arch` (75 for 7.5), with what it links.

    `signature`: a tuple of Numba types, one an argument. `link`: paths (.cu, .ptx) and objects such as
    `cuda.CUSource`. The entry's mangled name is replaced by the function's own, so that the PTX can be read. Raises
    Numba's own errors (`numba.cuda.core.errors.TypingError` and so on), CompileError for linked CUDA C++ that does not
    compile, NotImplementedError for linked code that is neither CUDA C++ nor PTX.
    """
    numba_cuda()
    from numba.cuda import types
    from numba.cuda.compiler import compile_cuda, kernel_fixup
    from numba.cuda.core.errors import NumbaDebugInfoWarning
    from numba.cuda.cudadrv import nvvm

    capability = divmod(arch, 10)
    with numba_without_gpu(capability), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaDebugInfoWarning)  # a function made by exec() has no lines to record
        try:
            compiled = compile_cuda(
                function,
                types.void,
                signature,
                debug=debug,
                lineinfo=True,
                fastmath=fastmath,
                nvvm_options={"fastmath": fastmath, "opt": 3 if opt else 0},
                cc=capability,
            )
        except Exception as error:  # whatever a mistake in the kernel makes of Numba: only the message helps a learner
            error._render_traceback_ = functools.partial(short_traceback, error)
            raise
        library = compiled.library
        kernel = library.get_function(compiled.fndesc.llvm_func_name)
        kernel_fixup(kernel, debug)
        nvvm.set_launch_bounds(kernel, launch_bounds)
        modules = library.get_asm_strs(cc=capability)
    linked = linked_code.of_kernel(modules, [*link, *library._linking_files])
    ptx = ptx_linking.link([*modules, *(code.ptx(arch) for code in linked)])
    mangled = re.search(r"\.visible \.entry (\w+)\(", ptx).group(1)
    entry = function.__name__ if function.__name__.isidentifier() else "kernel"
    texts = {code.name: code.text for code in linked}
    annotation, exceptions = compiled.type_annotation, compiled.call_helper.get_exception
    return NumbaProgram(ptx.replace(mangled, entry), entry, texts, library, annotation, exceptions)


@contextlib.contextmanager
def numba_without_gpu(capability: tuple[int, int]) -> Iterator[None]:
    """Numba compiles device functions for "the current device"; where there is none, name one."""
    from warplab.hardware import backend

    if backend.name() == "gpu":
        yield
        return
    from numba.cuda import dispatcher

    class Device:
        compute_capability = capability

    original = dispatcher.get_current_device
    dispatcher.get_current_device = Device
    try:
        yield
    finally:
        dispatcher.get_current_device = original


def numba_cuda() -> ModuleType:
    """The module numba.cuda. Raises CompilerNotFound; RuntimeError where Numba's own simulator has taken its place."""
    try:
        from numba import config, cuda
    except ImportError as error:
        raise CompilerNotFound(
            f"Numba for CUDA does not load ({error}); `python -m warplab doctor` says what is missing"
        ) from error
    if config.ENABLE_CUDASIM:
        raise RuntimeError("NUMBA_ENABLE_CUDASIM is set, so Numba compiles nothing; unset it and start Python again")
    return cuda


def _options(architecture: str, extra: tuple[str, ...]) -> list[str]:
    def given(*names: str) -> bool:
        return any(option.lstrip("-").split("=")[0].split(" ")[0] in names for option in extra)

    options = [f"-I{folder}" for folder in include_folders()]
    if not given("gpu-architecture", "arch"):
        options.append(f"--gpu-architecture={architecture}")
    if not given("std"):
        options.append("-std=c++17")
    if not given("lineinfo", "generate-line-info", "G", "device-debug"):
        options.append("-lineinfo")
    return options + list(extra)


@functools.cache
def include_folders() -> tuple[str, ...]:
    """Folders of the CUDA headers: runtime and crt (<mma.h>, <cuda_fp16.h>, ...) and CCCL (<cuda/std/...>)."""
    try:
        from cuda import pathfinder
    except ImportError:
        return ()
    folders = []
    for library in ("cudart", "cccl"):
        try:
            folder = pathfinder.find_nvidia_header_directory(library)
        except Exception:  # a header package that is missing matters only to sources that include from it
            folder = None
        if folder:
            folders.append(folder)
    # A toolkit of the system last, for what the packages lack: not every machine with a GPU has that of <crt/mma.h>.
    system = os.path.join(os.environ.get("CUDA_PATH", ""), "include")
    return (*folders, system) if os.path.isabs(system) and os.path.isdir(system) else tuple(folders)


class _NvrtcProgram:
    def __init__(self, nvrtc, source: str, name: str, name_expressions: tuple[str, ...]) -> None:
        self._nvrtc = nvrtc
        self.handle = self._call("CreateProgram", source.encode(), name.encode(), 0, [], [])
        for expression in name_expressions:
            self._call("AddNameExpression", self.handle, expression.encode())

    def _call(self, function: str, *arguments):
        result, *values = getattr(self._nvrtc, f"nvrtc{function}")(*arguments)
        if result.value:
            text = self._nvrtc.nvrtcGetErrorString(result)[1].decode()
            raise CompileError(f"NVRTC: nvrtc{function}: {text}")
        return values[0] if values else None

    def compile(self, options: list[str]) -> str:
        (result,) = self._nvrtc.nvrtcCompileProgram(self.handle, len(options), [o.encode() for o in options])
        log = self.output("ProgramLog").decode(errors="replace").strip("\0 \n")
        if result.value:
            raise CompileError(log or self._nvrtc.nvrtcGetErrorString(result)[1].decode())
        return log

    def output(self, kind: str) -> bytes:
        buffer = bytearray(self._call(f"Get{kind}Size", self.handle))
        self._call(f"Get{kind}", self.handle, buffer)
        return bytes(buffer) if kind == "CUBIN" else bytes(buffer).rstrip(b"\0")

    def lowered_name(self, expression: str) -> str:
        return self._call("GetLoweredName", self.handle, expression.encode()).decode()


@contextlib.contextmanager
def _nvrtc_program(source: str, name: str, name_expressions: tuple[str, ...]) -> Iterator[_NvrtcProgram]:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception as error:  # a missing shared library raises classes of cuda.pathfinder
        raise CompilerNotFound(
            f"NVRTC, the compiler of CUDA C++, does not load ({error}); `python -m warplab doctor` says what is missing"
        ) from error
    program = _NvrtcProgram(nvrtc, source, name, name_expressions)
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program.handle)


def _short_file_name(ptx: str, name: str) -> str:
    # NVRTC writes the working folder in front of a relative name.
    return ptx.replace(f'"{os.path.join(os.getcwd(), name)}"', f'"{name}"')


_HEAD = re.compile(r"^(.+)\((\d+)\): (?=(?:catastrophic )?error|warning|remark|note)", re.MULTILINE)
_NOISE = re.compile(
    r"^\d+ (catastrophic )?errors? detected in the compilation of .*$|^Compilation terminated\.$"
    r"|^Remark: The warnings can be suppressed.*$",
    re.MULTILINE,
)


_CANDIDATE = re.compile(r"^(/.+), line \d+: note #33(?:22|26)-D: .*\n?(?:[ \t]+.*\n?)*", re.MULTILINE)


def _without_candidates(report: str) -> str:
    """Functions of the headers that do not match a call as a number; a fragment's loads alone are 80 of them."""
    left_out = collections.Counter()

    def shorten(match: re.Match) -> str:
        if not match[1].startswith(include_folders()):
            return match[0]
        left_out[os.path.basename(match[1])] += 1
        return ""

    kept = _CANDIDATE.sub(shorten, report).rstrip("\n")
    return "\n".join(
        [kept, *(f"None of {number} declarations in {file} matches." for file, number in left_out.items())]
    )


def _readable(log: str) -> str:
    """NVRTC's log with "file, line N:" in front; where there are errors, the first of them only."""
    text = _NOISE.sub("", _HEAD.sub(r"\1, line \2: ", log))
    reports = [report.strip("\n") for report in re.split(r"\n\s*\n", text) if report.strip()]
    errors = [report for report in reports if re.match(r".*: (catastrophic )?error: ", report)]
    if not errors:
        return "\n".join(reports)
    more = len(errors) - MOST_ERRORS
    shown = [_without_candidates(report) for report in errors[:MOST_ERRORS]]
    return "\n".join(shown) + (f"\n{more} more error{'s' * (more > 1)}" if more > 0 else "")
