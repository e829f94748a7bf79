"""Write the names that CuPy has, warplab/dropin/cupy/names.txt, from the installed one.

    python -m evidence.cupy_names.known

A module that cannot be imported without a GPU's libraries is read: what it defines and imports from CuPy.
"""

from __future__ import annotations

import ast
import importlib
import sys
import types
import warnings
from pathlib import Path

from warplab.dropin.cupy._core.missing import LIST

MODULES = """
    cupy cupy.cuda cupy.cuda.compiler cupy.cuda.device cupy.cuda.memory cupy.cuda.nvtx
    cupy.cuda.pinned_memory cupy.cuda.runtime
    cupy.cuda.stream cupy.cuda.texture cupy.exceptions cupy.fft cupy.fft.config cupy.lib cupy.lib.stride_tricks
    cupy.linalg cupy.random cupy.testing cupyx cupyx.jit cupyx.profiler cupyx.scipy cupyx.scipy.fft cupyx.scipy.fftpack
    cupyx.scipy.linalg cupyx.scipy.ndimage cupyx.scipy.signal cupyx.scipy.sparse cupyx.scipy.sparse.linalg
    cupyx.scipy.spatial cupyx.scipy.spatial.distance cupyx.scipy.special cupyx.scipy.stats cupyx.time
"""


def main() -> int:
    warnings.simplefilter("ignore")
    import cupy

    head = f"# The public names of CuPy {cupy.__version__}, by module, from python -m evidence.cupy_names.known."
    lines = [head]
    root = Path(cupy.__file__).parents[1]
    for module in MODULES.split():
        try:
            found = sys.modules.get(module) or importlib.import_module(module)
            names = {name for name in dir(found) if not _is_of_others(getattr(found, name, None))}
        except Exception:  # it needs a library of the GPU
            path = root / module.replace(".", "/")
            names = _read(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
        names = {name for name in names if name[0] != "_" and name != "annotations"}
        lines.append(f"{module}: {' '.join(sorted(names))}")
    LIST.write_text("\n".join(lines) + "\n")
    return 0


def _is_of_others(value: object) -> bool:
    """Return whether this is a module that CuPy imports."""
    return isinstance(value, types.ModuleType) and not value.__name__.startswith("cupy")


def _read(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body if path.exists() else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cupy"):
            names.update(name.asname or name.name for name in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


if __name__ == "__main__":
    sys.exit(main())
