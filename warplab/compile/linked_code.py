"""What a Numba kernel links: CUDA C++ and PTX, given by its author or by Numba's own functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from warplab.compile import ptx_linking

# What the dispatcher of numba.cuda links when a kernel calls one of these functions.
_RESHAPE_FILE = "reshape_funcs.cu"
_RESHAPE_FUNCTIONS = ("nocopy_empty_reshape", "numba_attempt_nocopy_reshape")
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
        from warplab.compile.nvrtc import compile_cuda

        if self.is_ptx:
            return self.text
        ptx = compile_cuda(self.text, self.name, arch, ("-rdc=true",))
        return _LINES.sub("", ptx) if self.numbas_own else ptx


def of_kernel(modules: list[str], files: list) -> list[LinkedCode]:
    """List what to link to a kernel's PTX. `files`: paths (.cu, .ptx) and objects such as `cuda.CUSource`, each once.

    Raises NotImplementedError for compiled code.
    """
    import numba.cuda

    if any(name in _RESHAPE_FUNCTIONS for module in modules for name in ptx_linking.undefined(module)):
        files = [*files, str(Path(numba.cuda.__file__).parent / _RESHAPE_FILE)]
    return list(dict.fromkeys(map(_linked, files)))


def _linked(file) -> LinkedCode:
    from numba.cuda.cudadrv.linkable_code import CUSource, LinkableCode, PTXSource

    path = str(file) if isinstance(file, str | Path) else None
    code = LinkableCode.from_path(path) if path is not None else file
    if not isinstance(code, CUSource | PTXSource):
        what = type(code).__name__ if path is None else path
        raise NotImplementedError(
            f"{what} cannot be linked on the simulator, which runs PTX; link CUDA C++ (a .cu file, cuda.CUSource) or "
            "PTX (a .ptx file, cuda.PTXSource)"
        )
    callbacks = [c for c in (code.setup_callback, code.teardown_callback) if c is not None]
    numbas_own = any(c.__module__.startswith("numba.") for c in callbacks) or _in_numba(path)
    if callbacks and not numbas_own:
        raise NotImplementedError(
            f"{code.name} has a setup or teardown callback, which gets a module of the driver; link the code "
            "without callbacks, as the simulator has no driver"
        )
    text = code.data.decode() if isinstance(code.data, bytes) else code.data
    return LinkedCode(path or code.name, text, isinstance(code, PTXSource), numbas_own)


def _in_numba(path: str | None) -> bool:
    import numba.cuda

    return path is not None and Path(numba.cuda.__file__).parent in Path(path).parents
