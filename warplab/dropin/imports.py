"""`warplab.install()`: programs that import numba.cuda, numba_cuda_mlir, cupy, cupyx or triton get the stand-ins.

What decides is who imports: the libraries themselves, and this package, get the libraries. So `builtins.__import__` and
`importlib.import_module` are replaced by functions that look at the importing module's name; nothing is rewritten, and
sys.modules keeps the libraries' own modules. Child processes follow by two variables of the environment: WARPLAB=1, and
PYTHONPATH with the folder warplab/running/startup, whose sitecustomize.py installs the hook in them. Where neither is
set, no file of this package is read when Python starts.
"""

import builtins
import functools
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SWITCH, _TESTS = "WARPLAB", "WARPLAB_TESTS"  # in the environment of child processes: 1; what `tests` was
STARTUP = str(Path(__file__).parents[1] / "running" / "startup")
STANDINS = {"numba.cuda": "warplab.dropin.numba_cuda", "cupy": "warplab.dropin.cupy", "cupyx": "warplab.dropin.cupyx"}
# Libraries that a program gets as they are, once these modules have made them launch on the simulator.
_INSTALLED: dict[str, tuple[str, dict[str, Any]]] = {
    "numba_cuda_mlir": ("warplab.dropin.numba_cuda_mlir", {}),
    "triton": ("warplab.dropin.triton", {"torch_cuda": True}),
}
_TOPS = frozenset(("numba", "cupy", "cupyx", *_INSTALLED))
_LIBRARIES = frozenset((*_TOPS, "warplab", "warpcourse", "numba_cuda", "llvmlite", "cupy_backends", "importlib"))

_plain_import, _plain_import_module = builtins.__import__, importlib.import_module
_used: list[str] = []  # the first stand-in that was loaded
_waiting: list[Callable[[], None]] = []
_tests: list[str] = []  # packages inside the libraries that are programs all the same


class _Merged(types.ModuleType):
    """A module whose names are the stand-in's, where that has them, and the library's own otherwise."""

    def __init__(self, own: types.ModuleType, standin: types.ModuleType | None, **more: Any) -> None:
        super().__init__(own.__name__)
        self.__dict__.update(_own=own, _standin=standin, _more=more)
        for name in ("__file__", "__path__", "__spec__", "__all__", "__version__"):
            if hasattr(own, name):
                self.__dict__[name] = getattr(own, name)

    def __getattr__(self, name: str):
        if name in self._more:
            return self._more[name]()
        module = self._standin or self._own
        try:
            return getattr(module, name)
        except AttributeError as error:
            lacks_it = error.name == name and error.obj is module  # or it has it, and that fails
            if not lacks_it or name.startswith("__") or not hasattr(self._own, name):
                raise
            return getattr(self._own, name)

    def __setattr__(self, name: str, value) -> None:
        standin = self._standin
        setattr(standin if standin is not None and hasattr(standin, name) else self._own, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._own), *dir(self._standin)})


def install(*, children: bool = True, tests: Sequence[str] = ()) -> None:
    """Let what is imported from now on find the stand-ins, which run kernels on the simulator; once is enough.

    `children`: also in Pythons that this process starts, whatever starts them. `tests`: packages inside the libraries
    that count as programs, such as numba.cuda.tests. What a module has imported before stays what it is. Raises
    RuntimeError if WARPLAB_BACKEND asks for a GPU, which needs no stand-in.
    """
    if os.environ.setdefault("WARPLAB_BACKEND", "simulator") != "simulator":
        raise RuntimeError("WARPLAB_BACKEND=gpu asks for a GPU, where kernels need no stand-in: unset it")
    os.environ.pop("NUMBA_ENABLE_CUDASIM", None)  # Numba's own simulator, which compiles nothing
    inherited = os.environ.get(_TESTS, "").split()
    _tests.extend(name for name in dict.fromkeys((*tests, *inherited)) if name not in _tests)
    builtins.__import__, importlib.import_module = _import, _import_module
    if children:
        os.environ[SWITCH] = "1"
        if _tests:
            os.environ[_TESTS] = " ".join(_tests)
        folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join([STARTUP, *(f for f in folders if f and f != STARTUP)])


def look_like(card: str) -> None:
    """Let Triton, imported from now on, compile for a card."""
    _INSTALLED["triton"][1]["like"] = card


def installed() -> bool:
    """Return whether programs find the stand-ins."""
    return builtins.__import__ is _import


@functools.cache
def standin(name: str) -> types.ModuleType:
    """Return what a program gets that imports `name`, one of STANDINS or a module in it. Raises ModuleNotFoundError
    that says what is missing."""
    library = next(key for key in STANDINS if f"{name}.".startswith(f"{key}."))
    replacement = name.replace(library, STANDINS[library], 1)
    if not _exists(STANDINS[library]):
        raise ModuleNotFoundError(
            f"{library} has no stand-in in this version of Warp Lab, and without a GPU the library itself cannot run",
            name=name,
        )
    if name == library:
        whole = _whole(library)
        # Numba's own tests look into it.
        return _Merged(_plain_import_module(name), whole) if name == "numba.cuda" and _tests else whole
    if _exists(replacement):
        module = _plain_import_module(replacement)
        return _Merged(_plain_import_module(name), module) if library == "numba.cuda" else module
    if library == "numba.cuda":  # what the stand-in lacks is Numba's own
        module = _plain_import_module(name)
        if name == f"{library}.testing":  # whose base classes ask for the device
            vars(module)["devices"] = _plain_import_module(f"{STANDINS[library]}.cudadrv.devices")
        return module
    raise ModuleNotFoundError(f"the stand-in for {library} has no {name}", name=name)


def library(name: str) -> types.ModuleType:
    """Return the library's own module of this name."""
    return _plain_import_module(name)


def before_first_use(function: Callable[[], None]) -> None:
    """Call `function` when the first stand-in is loaded, or now if one has been."""
    if _used:
        function()
    else:
        _waiting.append(function)


def use(what: str) -> None:
    """Call what waits for the first use of the simulator, by a stand-in or whatever else."""
    if not _used:
        _used.append(what)
        for function in _waiting:
            function()


@functools.cache
def _install_in(library: str) -> None:
    """Make a library of _INSTALLED launch on the simulator."""
    use(library)
    module, options = _INSTALLED[library]
    builtins.__import__ = _plain_import  # an extension module of numba-cuda-mlir is loaded twice otherwise
    try:
        _plain_import_module(module).install(**options)
    finally:
        builtins.__import__ = _import


@functools.cache
def _whole(library: str) -> types.ModuleType:
    use(library)
    module = _plain_import_module(STANDINS[library])
    getattr(module, "install", lambda: None)()
    module.__name__ = library
    return module


@functools.cache
def _numba(member: bool = False) -> types.ModuleType:
    """Return numba with another `cuda`. `member`: for `from numba import cuda`."""
    numba = _plain_import("numba")
    cuda = functools.partial(_whole if member else standin, "numba.cuda")
    return _Merged(
        numba,
        None,
        cuda=cuda,
        **{name: functools.partial(_for_target, getattr(numba, name)) for name in ("vectorize", "guvectorize")},
    )


def _for_target(decorator: Callable) -> Callable:
    """Return the decorator with the stand-in behind target="cuda", for a program that does not import numba.cuda."""

    @functools.wraps(decorator)
    def for_target(*args, **kwargs):
        if kwargs.get("target") == "cuda":
            _whole("numba.cuda")
        return decorator(*args, **kwargs)

    return for_target


@functools.cache
def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent is no package
        return False


def _is_program(module_globals: dict | None, depth: int = 2) -> bool:
    """Return whether the module that imports is neither a library's nor this package's."""
    if module_globals is None:
        module_globals = sys._getframe(depth).f_globals
    name = module_globals.get("__name__") or ""
    return name.partition(".")[0] not in _LIBRARIES or any(f"{name}.".startswith(f"{test}.") for test in _tests)


def is_replaced(name: str) -> bool:
    """Return whether a program that imports the module `name` gets a stand-in, or is told that there is none."""
    return any(f"{name}.".startswith(f"{library}.") for library in STANDINS)


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    top = name.partition(".")[0]
    if level or top not in _TOPS or not _is_program(globals):
        return _plain_import(name, globals, locals, fromlist, level)
    if top in _INSTALLED:
        _install_in(top)
        return _plain_import(name, globals, locals, fromlist, level)
    if not is_replaced(name):
        module = _plain_import(name, globals, locals, fromlist, level)
        return _numba(bool(fromlist)) if name == top or not fromlist else module
    module = standin(name)
    if not fromlist:
        return _numba() if top == "numba" else standin(top)
    for wanted in fromlist:
        see_to(module, name, wanted)
    return module


def see_to(module: types.ModuleType, name: str, wanted: str) -> None:
    """See to it that `from NAME import WANTED` finds it in `module`. Raises ImportError that says why there is none."""
    if wanted == "*" or wanted in vars(module):
        return
    if isinstance(module, _Merged) and _exists(f"{name}.{wanted}"):
        vars(module)[wanted] = standin(f"{name}.{wanted}")
        return
    try:
        getattr(module, wanted)
    except AttributeError as error:
        try:
            inside = standin(f"{name}.{wanted}")
        except ModuleNotFoundError:
            raise ImportError(f"cannot import name {wanted!r} from {name!r}: {error}", name=name) from error
        vars(module).setdefault(wanted, inside)


def _import_module(name: str, package: str | None = None):
    __tracebackhide__ = True  # of pytest
    if name.startswith(".") or name.partition(".")[0] not in _TOPS or not _is_program(None):
        return _plain_import_module(name, package)
    top = name.partition(".")[0]
    if top in _INSTALLED:
        _install_in(top)
    if name == "numba":
        return _numba()
    return standin(name) if is_replaced(name) else _plain_import_module(name)
