"""What a Numba kernel links: CUDA C++ and PTX, given by its author or by Numba's own functions."""

import contextlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warplab.compile import ptx_linking
from warplab.compile.errors import CompileError

# What the dispatcher of numba.cuda links when a kernel calls one of these functions.
_RESHAPE_FILE = "reshape_funcs.cu"
_RESHAPE_FUNCTIONS = ("nocopy_empty_reshape", "numba_attempt_nocopy_reshape")
_RUNTIME_FUNCTIONS = "NRT_"  # allocation in kernels, of a module compiled with config.CUDA_ENABLE_NRT
_LINES = re.compile(r"^\s*\.(loc|file)\b.*\n", re.M)


@dataclass(frozen=True)
class LinkedCode:
    """Source to link. `name`: names the file in errors and reports.

    `numbas_own`: whether it is Numba's; such code has no lines of its own, its work counts for the line that calls it.
    """

    name: str
    text: str
    is_ptx: bool
    numbas_own: bool

    def ptx(self, arch: int) -> str:
        """Return the PTX for capability `arch` (75 for 7.5). Raises CompileError."""
        from warplab.compile.numba_internals import get_include
        from warplab.compile.nvrtc import compile_cuda_program

        if self.is_ptx:
            return self.text
        folders = [get_include()] if self.numbas_own else _extra_folders()
        options = ("-rdc=true", *(f"-I{folder}" for folder in folders))
        with _as_of_numba(Path(self.name).name):
            program = compile_cuda_program(self.text, self.name, arch, options)
        if self.numbas_own:
            return _LINES.sub("", program.ptx)
        if program.log:
            warnings.warn(f"NVRTC log messages: {program.log}", stacklevel=2)
        return program.ptx


@contextlib.contextmanager
def _as_of_numba(file: str) -> Iterator[None]:
    """Let linked code that does not compile raise what Numba raises, too: NVRTCError."""
    from cuda.core._utils.cuda_utils import NVRTCError

    class LinkedCompileError(CompileError, NVRTCError):
        pass

    try:
        yield
    except CompileError as error:
        error.__class__ = LinkedCompileError
        error.args = (f'{error}\nNVRTC_ERROR_COMPILATION in the compilation of "{file}"',)
        raise


def of_kernel(modules: list[str], files: list) -> list[LinkedCode]:
    """List what to link to a kernel's PTX. `files`: paths (.cu, .ptx) and objects such as `cuda.CUSource`, each once.

    Raises NotImplementedError for compiled code.
    """
    import numba.cuda

    from warplab.compile.numba_internals import NRT_LIBRARY

    undefined = [name for module in modules for name in ptx_linking.undefined(module)]
    if any(name in _RESHAPE_FUNCTIONS for name in undefined):
        files = [*files, str(Path(numba.cuda.__file__).parent / _RESHAPE_FILE)]
    if any(name.startswith(_RUNTIME_FUNCTIONS) for name in undefined) or any(getattr(f, "nrt", False) for f in files):
        files = [*files, NRT_LIBRARY]
    return list(dict.fromkeys(map(_linked, files)))


def _extra_folders() -> list[str]:
    """List the folders of headers that the user has named to Numba."""
    from warplab.compile.numba_internals import config

    return [folder for folder in config.CUDA_NVRTC_EXTRA_SEARCH_PATHS.split(":") if folder]


def _linked(file) -> LinkedCode:
    from numba.cuda import CUSource, LinkableCode, PTXSource

    from warplab.compile.numba_internals import NRT_LIBRARY, is_own

    path = str(file) if isinstance(file, str | Path) else None
    if path is not None:
        _check_path(path)
    code = LinkableCode.from_path(path) if path is not None else file
    if not isinstance(code, CUSource | PTXSource):
        what = type(code).__name__ if path is None else path
        raise NotImplementedError(
            f"{what} cannot be linked on the simulator, which runs PTX; link CUDA C++ (a .cu file, cuda.CUSource) or "
            "PTX (a .ptx file, cuda.PTXSource)"
        )
    callbacks = [c for c in (code.setup_callback, code.teardown_callback) if c is not None]
    numbas_own = is_own(path) or code is NRT_LIBRARY or any(_of_numba(c.__module__) for c in callbacks)
    if callbacks and not numbas_own:
        raise NotImplementedError(
            f"{code.name} has a setup or teardown callback, which gets a module of the driver; link the code "
            "without callbacks, as the simulator has no driver"
        )
    text = code.data.decode() if isinstance(code.data, bytes) else code.data
    return LinkedCode(path or code.name, text, isinstance(code, PTXSource), numbas_own)


def _of_numba(module: str) -> bool:
    return module.startswith("numba.") and not module.startswith("numba.cuda.tests.")


def _check_path(path: str) -> None:
    """Raise RuntimeError, as Numba does, for a file whose kind its name does not tell, FileNotFoundError for none."""
    from warplab.compile.numba_internals import FILE_EXTENSION_MAP

    extension = Path(path).suffix
    if extension != ".cu" and extension.lstrip(".") not in FILE_EXTENSION_MAP:
        what = f"with extension {extension}" if extension else "with no extension"
        raise RuntimeError(f"Don't know how to link file {what}: {path}. Link CUDA C++ (.cu) or PTX (.ptx)")
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} not found; it is to be linked to a kernel")
