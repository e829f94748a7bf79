"""A lab's kernels in CUDA C++ and Numba: compiled once per process, found by name, launched.

SOURCES = Sources(__package__, templates={"scan.cu": ["scan<float>", "scan<int>"]})
KERNELS = by_name(Kernel("cuda_scan", SOURCES, "scan.cu", "scan<float>"), ...)
choose(KERNELS, "cuda_scan").launch(blocks, 256, (source, out))
"""

import functools
import hashlib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from warpcourse.paths import COURSE
from warplab.compile import headers
from warplab.dropin import choice
from warplab.hardware import backend
from warplab.launch import profiling
from warplab.launch.kernel_source import CudaSource
from warplab.launch.on_gpu import InSimulator

OPTIONS = ("-std=c++17", "-lineinfo")  # of NVRTC; line numbers are for reports by source line

Size = int | Sequence[int]  # of a grid or a block
COPIES_AHEAD = "cp.async"  # in a kernel's text: needs compute capability 8.0


class NotOnThisCard(RuntimeError):
    """The GPU lacks what a kernel needs; the message says what."""


@functools.cache
def card() -> tuple[int, int]:
    """Return the GPU's compute capability, as 80, and the bytes of shared memory that it allows a block."""
    if backend.name() != "gpu":
        return 90, 227 * 1024  # those of an H100: the simulator has no limit of its own
    device = choice.load("cp").cuda.Device()
    return int(device.compute_capability), device.attributes["MaxSharedMemoryPerBlockOptin"]


class Lacking(InSimulator):
    """A kernel that needs what the GPU lacks, as `lack` says: `simulate` and profiles count it, in the simulator;
    outside of a profile a launch raises NotOnThisCard."""

    def __init__(self, source: CudaSource, lack: str) -> None:
        super().__init__(source)
        self._lack = lack

    def __call__(self, grid: Any, block: Any, args: tuple, *, shared_mem: int = 0) -> None:
        """Run a launch in the simulator, if a profile is open, and say so."""
        if not profiling.active():
            raise NotOnThisCard(self._lack)
        print(f"Not on this card, in the simulator: {self._lack}")
        super().__call__(grid, block, args, shared_mem=shared_mem)


class Sources:
    """The folder of a lab's kernels: .cu files and modules with Numba kernels.

    `package`: dotted name, such as "kernels.matmul". `templates`: by file the instances to compile together, such as
    "scan<4>", and all other kernels of that file that are not extern "C"; an instance that is not listed is compiled
    alone. `options`: further compiler options by file. `cuda_headers`: whether files include headers of the CUDA
    toolkit (cooperative groups, mma.h). `own_headers`: folders of headers, within the lab's.
    """

    def __init__(
        self,
        package: str,
        *,
        templates: Mapping[str, Sequence[str]] | None = None,
        options: Mapping[str, Sequence[str]] | None = None,
        cuda_headers: bool = False,
        own_headers: Sequence[str] = (),
    ) -> None:
        self.package = package
        self.folder = COURSE / Path(*package.split("."))
        self._templates = dict(templates or {})
        self._options = dict(options or {})
        self._cuda_headers = cuda_headers
        self._own_headers = [self.folder / name for name in own_headers]
        self._modules: dict[tuple[str, str], Any] = {}
        self._functions: dict[tuple[str, str], Any] = {}

    def text(self, file: str) -> str:
        """Return the source text of a file."""
        return (self.folder / file).read_text(encoding="utf-8")

    def options(self, file: str) -> tuple[str, ...]:
        """Return compiler options for a file of CUDA C++."""
        folders = tuple(f"-I{folder}" for folder in headers.include_folders()) if self._cuda_headers else ()
        return (*OPTIONS, *self._options.get(file, ()), *self._include, *folders)

    @functools.cached_property
    def _include(self) -> tuple[str, ...]:
        """Return options for the lab's own headers, with a digest of them, since CuPy keeps compiled code by source and
        options and does not look into headers."""
        if not self._own_headers:
            return ()
        texts = (path.read_bytes() for folder in self._own_headers for path in sorted(folder.glob("*.cu*")))
        digest = hashlib.sha256(b"".join(texts)).hexdigest()[:16]
        return (*(f"-I{folder}" for folder in self._own_headers), f"-DHEADERS=0x{digest}")

    def function(self, file: str, entry: str) -> Any:
        """Return the kernel `entry` of the active backend: a CuPy function of a .cu file, or a Numba dispatcher of a
        .py file.

        `entry`: the function's name, or an instance of a template, such as "scan<4>".
        """
        key = file, entry
        if key not in self._functions:
            if file.endswith(".py"):
                module = importlib.import_module(f"{self.package}.{file.removesuffix('.py').replace('/', '.')}")
                self._functions[key] = getattr(module, entry)
            elif COPIES_AHEAD in self.text(file) and card()[0] < 80:
                lack = f"{file} copies by {COPIES_AHEAD}, of compute capability 8.0 and newer; this GPU has "
                source = CudaSource(self.text(file), entry, self.options(file), file, by_cupy=True)
                self._functions[key] = Lacking(source, lack + str(card()[0] / 10))
            else:
                self._functions[key] = self._module(file, entry).get_function(entry)
        return self._functions[key]

    def _module(self, file: str, entry: str) -> Any:
        listed = tuple(self._templates.get(file, ()))
        alone = "<" in entry and entry not in listed
        key = file, entry if alone else ""
        if key not in self._modules:
            self._modules[key] = choice.load("cp").RawModule(
                code=self.text(file), options=self.options(file), name_expressions=(entry,) if alone else listed or None
            )
        return self._modules[key]


@dataclass(frozen=True)
class Kernel:
    """One kernel of a lab.

    `name`: unique in its table, such as "cuda_padded". `file`: a .cu file or a .py file of `sources`. `entry`: the
    function's name in it. `alignment`: bytes that the addresses of its arrays must be a multiple of.
    """

    name: str
    sources: Sources
    file: str
    entry: str
    alignment: int = 4

    @property
    def language(self) -> str:
        """Return "CUDA C++" or "Numba"."""
        return "Numba" if self.file.endswith(".py") else "CUDA C++"

    def function(self) -> Any:
        """Return the compiled kernel of the active backend: a CuPy function or a Numba dispatcher."""
        return self.sources.function(self.file, self.entry)

    def launch(self, grid: Size, block: Size, arguments: tuple, shared_bytes: int = 0) -> None:
        """Launch without any check; return before the kernel has finished. `shared_bytes`: dynamic shared memory."""
        launch(self.function(), grid, block, arguments, shared_bytes)

    def resident_blocks(self, block: int, shared_bytes: int = 0) -> int:
        """Return how many blocks the GPU runs at a time. On the simulator 4, so that loops have some rounds."""
        if backend.name() != "gpu":
            return 4
        import cupy

        function = self.function()
        if shared_bytes:
            function.max_dynamic_shared_size_bytes = shared_bytes
        of_one = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, block, shared_bytes)
        return of_one * cupy.cuda.Device().attributes["MultiProcessorCount"]


def launch(function: Any, grid: Size, block: Size, arguments: tuple, shared_bytes: int = 0) -> None:
    """Queue a CuPy function or a Numba dispatcher on the current stream."""
    grid, block = _as_tuple(grid), _as_tuple(block)
    if is_numba(function):
        function[(grid, block, 0, shared_bytes) if shared_bytes else (grid, block)](*arguments)
        return
    if shared_bytes:
        function.max_dynamic_shared_size_bytes = shared_bytes
    function(grid, block, arguments, shared_mem=shared_bytes)


_counters: dict[tuple[int, int], Any] = {}  # by device and stream, on which launches use them one after another


def zeroed_counters(count: int) -> Any:
    """Return at least `count` counters, uint32, that are 0, for a kernel on the current stream that leaves them so."""
    cp = choice.load("cp")
    if backend.name() != "gpu":
        return cp.zeros(count, np.uint32)
    key = cp.cuda.runtime.getDevice(), cp.cuda.get_current_stream().ptr
    if key not in _counters or _counters[key].size < count:
        _counters[key] = cp.zeros(max(count, 4096), np.uint32)
    return _counters[key]


def is_numba(function: Any) -> bool:
    """Return whether a kernel is Numba's. CuPy's stand-in has __getitem__, too, to say how it is launched."""
    return hasattr(function, "py_func")


def _as_tuple(size: Size) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)


Named = TypeVar("Named")


def by_name(*kernels: Any) -> dict[str, Any]:
    """Return a table of kernels (anything with a `name`) by name. ValueError when two share one."""
    table = {kernel.name: kernel for kernel in kernels}
    if len(table) != len(kernels):
        names = [kernel.name for kernel in kernels]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two kernels are called {', '.join(twice)}; give each a name of its own")
    return table


def choose(table: Mapping[str, Named], name: str) -> Named:
    """Return the kernel of that name. ValueError lists the others, only those of the same kind where there are any."""
    if not isinstance(name, str):
        raise ValueError(f"a kernel is chosen by name, not by {name!r}; choose one of {', '.join(table)}")
    if name not in table:
        alike = [known for known in table if _kind(name) and _kind(known) == _kind(name)]
        raise ValueError(f"there is no kernel {name!r}; choose one of {', '.join(alike or table)}")
    return table[name]


def _kind(name: str) -> str:
    """Return the word after the language, such as "histogram" in "cuda_histogram_shared"; "" if there is none."""
    language, _, rest = name.partition("_")
    return rest.partition("_")[0].partition("<")[0] if language in ("cuda", "numba") else ""
