"""Modules of CuPy that have a few names here, and the error for a name that is missing, by the list of CuPy's own."""

import functools
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

# "module: name name ..." for each public module, written by `python -m evidence.cupy_names.known`.
LIST = Path(__file__).parents[1] / "names.txt"
# What to do instead, by the beginning of a name.
_INSTEAD = {
    "cupy.cuda.Graph": "launch the kernels one after another",
    "cupy.poly1d": "give the coefficients to cupy.polyval and its relatives",
    "cupy.testing.": "write the test with pytest.mark.parametrize",
    "cupy.vectorize": "write a cupy.ElementwiseKernel",
    "cupyx.cutensor": "cupy.einsum computes it",
    "cupyx.scipy.sparse": "get() copies a matrix to SciPy's",
    "cupyx.jit": "write the kernel with numba.cuda or as a cupy.RawKernel",
}


@functools.cache
def _names() -> dict[str, frozenset[str]]:
    lines = (line.partition(": ") for line in LIST.read_text().splitlines() if not line.startswith("#"))
    return {module: frozenset(names.split()) for module, _, names in lines}


def known(module: str) -> frozenset[str]:
    """Return the public names of a module of CuPy."""
    return _names().get(module, frozenset())


def missing(module: str, name: str) -> AttributeError:
    """Return the error of a program that asks for `name`, which the stand-in for `module` does not have."""
    if name.startswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    if name not in known(module) and not name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}: CuPy has none of that name")
    whole = f"{module}.{name}"
    instead = next((text for start, text in _INSTEAD.items() if whole.startswith(start)), "")
    return AttributeError(
        f"{whole} is not on the simulator, which has what most programs use; on a GPU all of CuPy is there"
        + (f". Here: {instead}" if instead else "")
    )


def small_module(name: str, find: Callable[[str], Any] | None = None, **names: Any) -> ModuleType:
    """Make the stand-in for a module of CuPy that has these names; `find` looks for others."""

    def refuse(missed: str):
        raise missing(name, missed)

    made = ModuleType(f"warplab.dropin.{name}", f"{name} on the simulator.")
    made.__spec__ = ModuleSpec(made.__name__, None, is_package=True)
    made.__dict__.update(names, __path__=[], __getattr__=find or refuse)
    sys.modules[made.__name__] = made  # so that it can be imported
    return made


def do_nothing(*args, **kwargs) -> None:
    """Do nothing: what it is for on a GPU is not needed here."""
