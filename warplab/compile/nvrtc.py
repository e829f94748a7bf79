"""CUDA C++ to PTX or machine code by NVRTC, which comes as a pip package; needs no GPU and no CUDA toolkit."""

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.errors import CompileError, CompilerNotFound, readable
from warplab.compile.headers import include_folders


@dataclass(frozen=True)
class CudaProgram:
    """Compiled CUDA C++. `names`: the entry's name in PTX for each name expression; `log`: the compiler's warnings."""

    ptx: str
    names: dict[str, str] = field(default_factory=dict)
    log: str = ""


def compile_cuda(source: str, name: str = "kernel.cu", arch: int = DEFAULT_ARCH, options: tuple[str, ...] = ()) -> str:
    """Return the PTX of CUDA C++ `source`, with line information. `name` names the file in errors and reports.

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
    """Compile like `compile_cuda` and instantiate templates: each name expression ("scale<float>") becomes an entry."""
    with _nvrtc_program(source, name, name_expressions) as program:
        log = program.compile(_options(f"compute_{arch}", options))
        ptx = program.output("PTX").decode()
        names = {expression: program.lowered_name(expression) for expression in name_expressions}
    return CudaProgram(_short_file_name(ptx, name), names, readable(log))


@functools.lru_cache(maxsize=64)
def compile_cubin(
    source: str, name: str = "kernel.cu", arch: int = DEFAULT_ARCH, options: tuple[str, ...] = ()
) -> bytes:
    """Return machine code for compute capability `arch`, which a driver older than the compiler loads, unlike PTX."""
    with _nvrtc_program(source, name, ()) as program:
        program.compile(_options(f"sm_{arch}", tuple(options)))
        return program.output("CUBIN")


@functools.lru_cache(maxsize=256)
def assemble_cuda(
    source: str, name: str, arch: int | str, options: tuple[str, ...] = (), name_expressions: tuple[str, ...] = ()
) -> tuple[str, bytes, dict[str, str]]:
    """Return NVRTC's report (`--ptxas-options=-v`), the machine code, and the names of `name_expressions` in it.

    `arch`: 90 for compute capability 9.0, "90a" with the instructions that only this one has.
    """
    given = [option for option in _options(f"sm_{arch}", options) if not re.match("--?(gpu-)?arch", option)]
    with _nvrtc_program(source, name, name_expressions) as program:
        # With its cache NVRTC would give no report.
        log = program.compile([*given, f"--gpu-architecture=sm_{arch}", "--ptxas-options=-v", "--no-cache"])
        names = {expression: program.lowered_name(expression) for expression in name_expressions}
        return log, program.output("CUBIN"), names


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
        raise CompilerNotFound("NVRTC, the compiler of CUDA C++,", error) from error
    program = _NvrtcProgram(nvrtc, source, name, name_expressions)
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program.handle)


def _short_file_name(ptx: str, name: str) -> str:
    # NVRTC writes the working folder in front of a relative name.
    return ptx.replace(f'"{os.path.join(os.getcwd(), name)}"', f'"{name}"')
