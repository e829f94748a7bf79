"""A program from its files: host code by the machine's C++ compiler, kernels by NVRTC, and how the two correspond."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from warplab import simulator
from warplab.compile import cuda_signature, nvrtc, ptx_assembler, ptx_linking
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.errors import CompileError
from warplab.compile.headers import AS_NVCC, include_folders
from warplab.compile.ptx_assembler import Assembled
from warplab.compile.source_files import label_files
from warplab.program.device_source import DeviceSource
from warplab.program.host_code import IDENTITY, LIBRARIES, SourceError, host_code
from warplab.simulator.ptx.inlining import BUILTINS
from warplab.simulator.translate import kept_code

INCLUDE = Path(__file__).with_name("include")
HEADER = INCLUDE / "warplab_cudart.h"
CUDA_FILES, HOST_FILES = (".cu", ".cuda"), (".cpp", ".cc", ".cxx", ".c")
_FOR_NVRTC = re.compile(r"--?(use_fast_math|ftz|prec-div|prec-sqrt|fmad|maxrregcount|gpu-architecture)\b|--?std=c\+\+2")
_FOR_BOTH = re.compile(r"-([DUI]|std=)")
_COMPILE = ("-O2", "-g1", "-w", "-fpermissive", "-fno-strict-aliasing")
_LIBRARY = re.compile(r"[^\n/]*: error: [^\n]*['‘](?:struct )?(thrust|cub)(?:::\w+)*['’][^\n]*")
_HEADER = re.compile(r"[^\n/]*: fatal error: (cu(?:blas|dnn|fft|solver|sparse|tensor)|nccl|nvml|nvToolsExt)[^\n]*")
_CURAND = re.compile(r"fatal error: (curand\w*\.h)")
_MISSING = re.compile(r"undefined reference to [`'](\w+)'")


class BuildError(Exception):
    """The program cannot be built; the message says why."""


@dataclass
class Unit:
    """One .cu file as the simulator runs it. `entries`: by their names in machine code and on the host; `instances`:
    numbers of variables that are instances of templates, by their names in the host's machine code."""

    file: str
    text: str
    program: simulator.Program
    entries: dict[str, Kernel]
    variables: list[str]  # names in PTX, by number
    instances: dict[str, int] = field(default_factory=dict)


class _Part(NamedTuple):
    """One .cu file, compiled. `kernels`: name expression and name in PTX, by symbols of the host; the rest: as of a
    unit, and as of its kernels."""

    file: str
    text: str
    ptx: str
    kernels: dict[str, tuple[str, str]]
    variables: list[str]
    instances: dict[str, int]
    options: tuple[str, ...]
    wanted: tuple[str, ...]


@dataclass
class Kernel:
    """A kernel of a unit. `name`: as in the source, with template arguments. `joined`: PTX of all files, if it calls
    what another file has. `dynamic_bytes` of shared memory and `wide_clusters`, of more than 8 blocks: what the program
    has asked for."""

    name: str
    entry: simulator.Entry
    text: str
    file: str
    options: tuple[str, ...]
    expressions: tuple[str, ...]
    joined: str = ""
    dynamic_bytes: int | None = None
    wide_clusters: bool = False

    def assemble(self, arch: int) -> Assembled:
        """Return machine code for capability `arch` (75 for 7.5), with the assembler's report.

        Raises RuntimeError for an older one than files that are joined were compiled for.
        """
        if self.joined:
            return ptx_assembler.assemble(self.joined, self.entry.name, arch)
        own = f"{arch}a" if any(option.endswith(f"_{arch}a") for option in self.options) else arch
        log, cubin, _ = nvrtc.assemble_cuda(self.text, self.file, own, self.options, self.expressions)
        return Assembled(log, self.entry.name, cubin)

    @functools.cached_property
    def parameters(self) -> list[cuda_signature.Parameter]:
        """Return the parameters as declared; none where that is not known."""
        plain = re.split(r"[<(]", self.name)[0].split("::")[-1]
        known = _signatures(self.text).get(plain)
        same = known is not None and len(known.parameters) == len(self.entry.params)
        return list(known.parameters) if known is not None and same else []


_signatures = functools.lru_cache(maxsize=16)(cuda_signature.kernels)


@dataclass
class Program:
    """What `build` makes. `kernels`: by each address that stands for them on the host; `instances`: units and numbers
    of variables that are instances of templates, by their addresses there. The others tell theirs."""

    executable: Path
    kernels: dict[int, Kernel]
    units: list[Unit]
    instances: dict[int, tuple[int, int]] = field(default_factory=dict)

    def place(self, address: int) -> tuple[str, int]:
        """Return file and line of the call that returns to `address`; ("", 0) if unknown."""
        for file, line in self._lines([address]):
            if line.isdigit() and "?" not in file and not file.startswith((str(INCLUDE), *include_folders())):
                return file, int(line)
        return "", 0

    def in_library(self, callers: Sequence[int]) -> bool:
        """Return whether one of the calls is Thrust's or CUB's."""
        return any(LIBRARIES.search(file) for file, _ in self._lines(callers))

    def _lines(self, addresses: Sequence[int]) -> list[tuple[str, str]]:
        """Return file and line of the calls that return to the addresses, and of those into which they are inlined."""
        tool = shutil.which("addr2line")
        if tool is None or not any(addresses):
            return []
        command = [tool, "-i", "-e", str(self.executable), *(hex(max(0, address - 1)) for address in addresses)]
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        return [(row[0], row[2]) for row in (line.partition(" (discriminator")[0].rpartition(":") for line in found)]


def build(files: Sequence[str], options: Sequence[str], folder: Path) -> Program:
    """Build the program of the files, of which those that end with .cu have kernels, in `folder`.

    `options`: of nvcc or g++. Raises BuildError, CompileError and SourceError.
    """
    compiler = os.environ.get("CXX") or next((c for c in ("g++", "clang++", "c++") if shutil.which(c)), None)
    if compiler is None or shutil.which(compiler.split()[0]) is None:
        wanted = f"{compiler}, which CXX names, is not there" if compiler else "there is none (g++ or clang++)"
        raise BuildError(f"the host's part of a CUDA C++ program needs a C++ compiler, and {wanted}; install one")
    made = _Build(compiler.split(), tuple(options), folder)
    with ThreadPoolExecutor(2) as pool:
        runtime = pool.submit(made.runtime)
        parts = list(pool.map(made.part, range(len(files)), files))
        joined = any(part and set(ptx_linking.undefined(part.ptx)) - {*BUILTINS} for part in parts)
        if joined := joined and len(files) > 1:
            parts = list(pool.map(functools.partial(made.part, joined=True), range(len(files)), files))
        units = made.units(parts, joined)
        objects = [runtime.result(), *(folder / f"{number}.o" for number in range(len(files)))]
    executable = made.link(objects)
    numbers = {symbol: (n, number) for n, u in enumerate(units) if u for symbol, number in u.instances.items()}
    places = {at: numbers[name] for at, name in made.symbols(executable) if name in numbers} if numbers else {}
    return Program(
        executable, made.kernels(executable, [u for u in units if u]), [u or _NO_UNIT for u in units], places
    )


class _Build:
    def __init__(self, compiler: list[str], options: tuple[str, ...], folder: Path) -> None:
        self.compiler, self.folder = compiler, folder
        self.nvrtc = (
            "-default-device",
            f"-I{AS_NVCC}",
            "-Dregister=",
            "-D__extension__=",
            "-D__const__=const",
            *(option for option in options if _FOR_NVRTC.match(option)),
        )
        named = next((option for option in options if option.startswith("--gpu-architecture=")), f"{DEFAULT_ARCH}")
        self.arch = 10 * int("".join(filter(str.isdigit, named)))  # as __CUDA_ARCH__ has it
        self.both = [option for option in options if _FOR_BOTH.match(option)]
        self.host = [o for o in options if not _FOR_BOTH.match(o) and not _FOR_NVRTC.match(o)]
        if not any(option.startswith("-std=") for option in self.both):
            self.both.append("-std=c++17")
        self.cuda_folders = tuple(include_folders())
        # A program's own folder of include files may lie among CUDA's only by mistake.
        folders = (*self.cuda_folders, str(INCLUDE))
        self.system: list[str | Path] = [part for each in folders for part in ("-isystem", each)]
        _hide_cudacc(self.cuda_folders, folder / "plain")

    def runtime(self) -> Path:
        """Compile the stand-in for libcudart, unless an earlier process has left it."""
        target = self.folder / "runtime.o"
        command = ["-c", "-x", "c++", "-std=c++17", "-DWARPLAB_RUNTIME", "-O1", "-w", *self.system, HEADER]
        read = [shutil.which(self.compiler[0]), HEADER, *(f"{each}/cuda_runtime_api.h" for each in self.cuda_folders)]
        states = [
            (file, (at := os.stat(file)).st_size, at.st_mtime_ns) for file in map(str, read) if os.path.exists(file)
        ]
        key = hashlib.sha256(repr((self.compiler, list(map(str, command)), states)).encode()).hexdigest()
        if kept := kept_code.find(key):
            target.write_bytes(kept)
        else:
            self._run([*command, "-o", target])
            kept_code.keep(key, target.read_bytes())
        return target

    def part(self, number: int, file: str, joined: bool = False) -> _Part | None:
        """Compile one file for the host and, if it has kernels, for the device. `joined`: its functions for the device
        are for other files, too (nvcc's -rdc=true)."""
        target = self.folder / f"{number}.o"
        if not file.endswith(CUDA_FILES):
            more: list[str | Path] = [*self.both, "-include", HEADER]
            if file.endswith(".c"):  # is C, to nvcc too
                more = ["-x", "c", *(option for option in self.both if not option.startswith("-std=c++"))]
            self._run(["-c", *_COMPILE, *self.system, *self.host, *more, file, "-o", target])
            return None
        more = [part for each in (INCLUDE / "host", self.folder / "plain") for part in ("-isystem", each)]
        host = host_code(self._preprocessed(file, "-DWARPLAB_HOST", *more), self.cuda_folders, number)
        text = self.folder / f"{number}.ii"
        text.write_text(host.text, encoding="utf-8")
        standard = [option for option in self.both if option.startswith("-std=")]
        self._run(["-c", "-x", "c++-cpp-output", *_COMPILE, *standard, *self.host, text, "-o", target])
        if IDENTITY not in host.text and not host.variables and not joined:
            return None  # all that it asks of the device is what libraries do on the host
        symbols = [name for _, name in self.symbols(target) if name.startswith("_ZZ") and name.endswith(_SUFFIX)]
        expressions = self._expressions(dict.fromkeys(symbols))
        instances = self._instances(target, host.templates) if host.templates else {}
        device = DeviceSource.of(self._preprocessed(file, f"-DWARPLAB_DEVICE={self.arch}"), self.cuda_folders)
        name, options = os.path.basename(file), (*self.nvrtc, *["-rdc=true"] * joined)
        names = [*host.variables, *instances.values()]

        def compiled_with(expressions: dict[str, str]) -> tuple[tuple[str, ...], str, nvrtc.CudaProgram]:
            wanted = tuple(dict.fromkeys([*expressions.values(), *(f"&{name}" for name in names)]))
            return wanted, *device.compile(name, options, wanted)

        try:
            wanted, code, compiled = compiled_with(expressions)
        except CompileError as error:
            if "which instance of overloaded function" not in error.log:
                raise
            expressions = self._expressions(dict.fromkeys(symbols), alike=True)
            wanted, code, compiled = compiled_with(expressions)
        kernels = {symbol: (expression, compiled.names[expression]) for symbol, expression in expressions.items()}
        variables = [compiled.names[f"&{name}"] for name in names]
        numbers = {symbol: number for number, symbol in enumerate(instances, len(host.variables))}
        return _Part(file, code, compiled.ptx, kernels, variables, numbers, options, wanted)

    def units(self, parts: Sequence[_Part | None], joined: bool) -> list[Unit | None]:
        """Return the parts as the simulator runs them: `joined`, as one program, of which each has its kernels."""
        there = [part for part in parts if part]
        if not joined:
            programs = {part.file: (part.ptx, simulator.load(*label_files(part.ptx))) for part in there}
        else:
            try:
                ptx = ptx_linking.link([part.ptx for part in there])
            except ValueError as error:  # a function that two files define
                raise BuildError(str(error)) from None
            programs = dict.fromkeys([part.file for part in there], (ptx, simulator.load(*label_files(ptx))))
        units: list[Unit | None] = []
        for part in parts:
            if part is None:
                units.append(None)
                continue
            ptx, program = programs[part.file]
            name = os.path.basename(part.file)
            entries = {}
            for symbol, (expression, lowered) in part.kernels.items():
                shown = re.sub(r"static_cast<void\(\*\)(.*)>\((.*)\)$", r"\2\1", expression)
                entry = program.entries[lowered]
                entries[symbol] = Kernel(shown, entry, part.text, name, part.options, part.wanted, ptx * joined)
            own = f"$m{there.index(part) + 1}"  # of names that no other file sees, where they are joined
            variables = [name + own * (name + own in program.variables) for name in part.variables]
            units.append(Unit(part.file, part.text, program, entries, variables, part.instances))
        return units

    def link(self, objects: Sequence[Path]) -> Path:
        target = self.folder / "program"
        libraries = [option for option in self.host if option.startswith(("-l", "-L", "-f"))]
        try:
            self._run(["-no-pie", *objects, "-o", target, "-lpthread", "-lm", *libraries])
        except BuildError as error:
            names = sorted(dict.fromkeys(_MISSING.findall(str(error))), key=lambda name: not name.startswith("cuda"))
            if not names:
                called = re.search(r"undefined reference to [`']([^'(]*)", str(error))
                if called is None:
                    raise
                told = f"host code, or a library on the host, calls {called[1]}, which is code for the device alone"
                raise BuildError(f"{told}, or in no file that was named") from None
            if "main" in names:
                raise BuildError("the program has no main; name the file that has it, too") from None
            shown = ", ".join(names[:5]) + ", ..." * (len(names) > 5)
            who = "Warp Lab's CUDA runtime does not have" if shown.startswith("cuda") else "no file that was named has"
            who += "; -fopenmp brings OpenMP" * names[0].startswith("omp_")
            raise BuildError(f"the program calls {shown}, which {who}") from None
        return target

    def kernels(self, executable: Path, units: Sequence[Unit]) -> dict[int, Kernel]:
        """Return the kernels by the addresses of their functions and of the variables that stand for them."""
        found: dict[int, Kernel] = {}
        known = {symbol: kernel for unit in units for symbol, kernel in unit.entries.items()}
        functions = {_function(symbol): kernel for symbol, kernel in known.items()}
        seen: dict[str, int] = {}
        for address, name in self.symbols(executable):
            kernel = known.get(name) or functions.get(name)
            if kernel is None:
                continue
            if seen.setdefault(name, address) != address:
                raise BuildError(f"two files have a kernel {kernel.name} of their own; give one another name")
            found[address] = kernel
        return found

    def _preprocessed(self, file: str, *more: str | Path) -> str:
        command: list[str | Path] = ["-E", "-x", "c++", "-w", *more, *self.both, *self.system, "-include", HEADER, file]
        done = subprocess.run(
            [*self.compiler, *(o for o in self.host if o == "-fopenmp"), *command],
            capture_output=True,
            text=True,
            check=False,
            errors="replace",
        )
        if done.returncode and ("-DWARPLAB_HOST" in more or not done.stdout):
            raise _lacking(done.stderr)
        return done.stdout

    def _run(self, arguments: Sequence[str | Path]) -> None:
        done = subprocess.run(
            [*self.compiler, *arguments], capture_output=True, text=True, check=False, errors="replace"
        )
        if done.returncode:
            raise _lacking(done.stderr)

    def symbols(self, file: Path) -> list[tuple[int, str]]:
        listed = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        return [(int(row[0], 16), row[2]) for row in rows if len(row) == 3]

    def _instances(self, file: Path, templates: Sequence[str]) -> dict[str, str]:
        """Return NVRTC's name expressions of the instances of templates of variables that a file has, by symbols."""
        symbols = [name for _, name in self.symbols(file) if name.startswith("_Z")]
        return {
            s: text for s, text in zip(symbols, _demangled(symbols), strict=True) if text.split("<")[0] in templates
        }

    def _expressions(self, symbols: dict[str, None], *, alike: bool = False) -> dict[str, str]:
        """Return NVRTC's name expression of the kernel of each symbol. `alike`: others may have its name."""
        texts = _demangled(_function(symbol) for symbol in symbols)
        if closures := [text for text in texts if "{lambda" in text]:
            name = closures[0].split("<")[0].split()[-1]
            raise SourceError(
                f"kernel {name} takes a lambda (nvcc's --extended-lambda): give it a struct with operator()"
            )
        heads = [_without_result(text[: _parameters(text)]) for text in texts]
        return {
            symbol: head
            if (heads.count(head) == 1 and not alike) or "<" in head
            else f"static_cast<void(*){text[_parameters(text) :]}>({head})"  # one of several of this name
            for symbol, text, head in zip(symbols, texts, heads, strict=True)
        }


def _demangled(symbols: Iterable[str]) -> list[str]:
    shown = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    return [text.replace("(anonymous namespace)::", "") for text in shown.splitlines()]


def _hide_cudacc(cuda_folders: Sequence[str], target: Path) -> None:
    """Write to `target` a header of the name of each that programs include of CUDA's, which g++ reads only without
    __CUDACC__; the program's own code has it. CUB's are for nvcc alone: one of ours stands for all."""
    for folder in map(Path, cuda_folders):
        for pattern in ("*.h", "*/*", "cuda/std/*", "thrust/*/*", "cub/*/*"):
            for header in filter(Path.is_file, folder.glob(pattern)):
                name = header.relative_to(folder)
                text = "#include <warplab_libraries.h>\n"
                if name.parts[0] != "cub":
                    text = (
                        f'#pragma push_macro("__CUDACC__")\n#undef __CUDACC__\n#include_next <{name}>\n'
                        '#pragma pop_macro("__CUDACC__")\n'
                    )
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_text(text)


_SUFFIX = f"E{len(IDENTITY)}{IDENTITY}"
_NO_UNIT = Unit("", "", None, {}, [])  # type: ignore[arg-type]


def _function(symbol: str) -> str:
    """Return the name in machine code of the function in which the static variable of this symbol is."""
    encoded = symbol.removeprefix("_ZZ").removesuffix(_SUFFIX)
    plain = re.fullmatch(r"\d+(\w+)", encoded)
    if plain and len(plain[1]) == int(re.match(r"\d+", encoded)[0]):  # type: ignore[index]
        return plain[1]  # extern "C"
    return f"_Z{encoded}"


def _parameters(text: str) -> int:
    """Return where the parameters begin in a demangled name."""
    depth = 0
    for position, mark in enumerate(text):
        if mark == "(" and depth == 0:
            return position
        depth += (mark in "<(") - (mark in ">)")
    return len(text)


def _without_result(head: str) -> str:
    depth = 0
    for position in range(len(head) - 1, -1, -1):
        depth += (head[position] in ">)") - (head[position] in "<(")
        if head[position] == " " and depth == 0:
            return head[position + 1 :]
    return head


def _lacking(log: str) -> BuildError:
    """Return the error for what the C++ compiler says, by the name of a library that the program lacks."""
    if curand := _CURAND.search(log):
        return BuildError(f'the program includes {curand[1]}, which is not installed: pip install "warplab[curand]"')
    if "‘texture’ does not name a type" in log or "'texture' does not name a type" in log:
        return BuildError("the program uses texture references, texture<...>, which CUDA 12 has taken away")
    header = _HEADER.search(log)
    library = header or _LIBRARY.search(log)
    if library is None:
        return BuildError(f"the C++ compiler refuses the program: {_first_errors(log)}")
    name = library[1] if header else {"thrust": "Thrust", "cub": "CUB"}[library[1]]
    told = f"{name}, which Warp Lab does not have" if header else f"more of {name} than Warp Lab has"
    return BuildError(f"the program uses {told} ({library[0].strip()})")


def _first_errors(log: str) -> str:
    lines = [line for line in log.splitlines() if re.search(r"error|undefined reference|cannot find", line)]
    return "\n".join(lines[: 60 if "undefined reference" in log else 3]) or log.strip()[-2000:]


__all__ = ["BuildError", "Kernel", "Program", "SourceError", "Unit", "build"]
