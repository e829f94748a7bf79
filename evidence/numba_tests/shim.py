"""What a process needs to run numba-cuda's own tests against the stand-in: their `numba.cuda` becomes the stand-in's.

Only the tests are changed, as they are read: `from numba import cuda` becomes the stand-in, and a name imported from a
module of numba.cuda is the stand-in's if that has it and Numba's own if not. Numba itself stays as it is. As a plugin
of pytest this module also writes one line of JSON per event to the file named by
WARPLAB_TESTS_EVENTS, so that a process that crashes or hangs leaves what it did.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import types
from multiprocessing import spawn
from pathlib import Path

import pytest

TESTS = "numba.cuda.tests"
DROPIN = "warplab.dropin.numba_cuda"
EVENTS = "WARPLAB_TESTS_EVENTS"  # not NUMBA_...: a change of such a variable makes Numba read all its settings again
_COPIES = "/numba-cuda-tests."  # numba.cuda.tests.support.temp_directory
_NAME = "__numba_tests__"  # by which changed modules know this one


# -- names -------------------------------------------------------------------------------------------------------------


class _Merged(types.ModuleType):
    """A module of numba.cuda whose names are the stand-in's, where that has them, and Numba's own otherwise."""

    def __init__(self, own: types.ModuleType, standin: types.ModuleType) -> None:
        super().__init__(own.__name__)
        self.__dict__.update(_own=own, _standin=standin)

    def __getattr__(self, name: str):
        try:
            return getattr(self._standin, name)
        except AttributeError:
            return getattr(self._own, name)

    def __setattr__(self, name: str, value) -> None:
        setattr(self._standin if hasattr(self._standin, name) else self._own, name, value)


def module(name: str):
    """Return the module `name`, which is numba.cuda or is inside it, with the stand-in's names before Numba's own."""
    standin = name.replace("numba.cuda", DROPIN, 1)
    if _spec(standin) is None:
        return importlib.import_module(name)
    return _Merged(importlib.import_module(name), importlib.import_module(standin))


def cuda() -> types.ModuleType:
    """Return what `from numba import cuda` gives."""
    return importlib.import_module(DROPIN)


def member(name: str, attribute: str):
    """Return what `from NAME import ATTRIBUTE` gives; `name` is numba.cuda or a module in it."""
    try:
        inside = _spec(f"{name}.{attribute}")
        return getattr(module(name), attribute) if inside is None else module(f"{name}.{attribute}")
    except AttributeError as error:
        raise ImportError(f"cannot import name {attribute!r} from {name!r}: {error}") from error


def replaces(name: str, attribute: str) -> bool:
    """Return whether `from NAME import ATTRIBUTE` gives something else than Numba's own."""
    if (name, attribute) == ("numba", "cuda"):
        return True
    try:
        return member(name, attribute) is not getattr(importlib.import_module(name), attribute)
    except ImportError:  # the stand-in refuses it, or it is for another platform
        return True


def _spec(name: str):
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:  # the parent is no package
        return None


# -- source ------------------------------------------------------------------------------------------------------------


class Rewriter(ast.NodeTransformer):
    """Point imports of numba.cuda at the stand-in. `imported`: modules and the names imported from them."""

    def __init__(self) -> None:
        self.imported: list[tuple[str, str]] = []

    def visit_ImportFrom(self, node: ast.ImportFrom):
        if node.level or not node.module:
            return node
        parts: list[ast.stmt] = []
        kept = []
        for alias in node.names:
            bound = alias.asname or alias.name
            if node.module == "numba" and alias.name == "cuda":
                self.imported.append(("numba", "cuda"))
                parts.append(self._assign(bound, f"{_NAME}.cuda()", node))
            elif (node.module + ".").startswith("numba.cuda."):
                self.imported.append((node.module, alias.name))
                value = f"{_NAME}.member({node.module!r}, {alias.name!r})"
                parts.append(self._assign(bound, value, node))
            else:
                kept.append(alias)
        if kept:
            parts.insert(0, ast.copy_location(ast.ImportFrom(node.module, kept, 0), node))
        return parts

    def visit_Attribute(self, node: ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "numba" and node.attr == "cuda":
            self.imported.append(("numba", "cuda"))
            return _located(ast.parse(f'{_NAME}.module("numba.cuda")', mode="eval").body, node)
        self.generic_visit(node)
        return node

    def _assign(self, name: str, value: str, node: ast.AST) -> ast.stmt:
        return _located(ast.parse(f"{name} = {value}").body[0], node)


def _located(new, old):
    for part in ast.walk(new):
        if "lineno" in part._attributes:
            ast.copy_location(part, old)
    return new


def rewritten(source: str) -> tuple[ast.Module, list[tuple[str, str]]]:
    """Return the syntax tree of a test module whose numba.cuda is the stand-in, and what it imports of numba.cuda."""
    rewriter = Rewriter()
    tree = rewriter.visit(ast.parse(source))
    first = ast.parse(f"import {__name__} as {_NAME}").body
    at = next((number for number, statement in enumerate(tree.body) if not _comes_first(statement)), 0)
    tree.body[at:at] = first
    return ast.fix_missing_locations(tree), rewriter.imported


def _comes_first(statement: ast.stmt) -> bool:
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return docstring or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str):  # no .pyc: that of the unchanged module lies beside it
        path = self.get_filename(fullname)
        return compile(rewritten(self.get_data(path).decode())[0], path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Loads the tests of numba-cuda, changed, and modules that they copy to their folder of temporary files."""

    def __init__(self) -> None:
        self._busy = False

    def find_spec(self, name: str, path, target=None):
        of_tests = (name + ".").startswith(TESTS + ".")
        if self._busy or not (of_tests or (path is None and any(_COPIES in folder for folder in sys.path))):
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is not None and spec.origin and spec.origin.endswith(".py") and (of_tests or _COPIES in spec.origin):
            spec.loader = _Loader(name, spec.origin)
        return spec


def install() -> None:
    """Let the tests that are imported from now on, and Numba's helpers for tests, use the stand-in."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    cuda().install()
    sys.modules["cupy"] = importlib.import_module("warplab.dropin.cupy")  # which without a GPU is a stand-in, too
    from numba.cuda import testing

    from warplab.dropin.numba_cuda.cudadrv import devices

    testing.devices = devices  # which asks for the compute capability
    start = subprocess.Popen.__init__

    @functools.wraps(start)
    def start_with_standin(self, args, *rest, **kwargs):
        start(self, _with_standin(args), *rest, **kwargs)

    subprocess.Popen.__init__ = start_with_standin
    command = spawn.get_command_line

    @functools.wraps(command)
    def command_with_standin(**arguments) -> list[str]:
        return _with_standin(command(**arguments))

    spawn.get_command_line = command_with_standin


def _with_standin(command):
    """Let a Python that a test starts with `-c` or `-m` run the text or the module with the stand-in, too."""
    if not isinstance(command, list) or command[:1] not in ([sys.executable], [os.fsencode(sys.executable)]):
        return command
    for option, function in (("-c", execute), ("-m", run_module)):
        if option in command[:-1]:
            at = command.index(option)
            code = f"import {__name__} as shim; shim.{function.__name__}({command[at + 1]!r})"
            return [*command[:at], "-c", code, *command[at + 2 :]]
    return command


def execute(code: str) -> None:
    """Run the text of a program as `python -c` does, with the stand-in."""
    install()
    import __main__

    exec(compile(rewritten(code)[0], "<string>", "exec", dont_inherit=True), __main__.__dict__)


def run_module(name: str) -> None:
    """Run a module as `python -m` does, with the stand-in."""
    install()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


# -- pytest ------------------------------------------------------------------------------------------------------------


class _TestModule(pytest.Module):
    """A file of tests under its own name: pytest would make one of the file's path and load Numba a second time."""

    def _getobj(self):
        tests = Path(importlib.util.find_spec(TESTS).origin).parent
        return importlib.import_module(".".join([TESTS, *self.path.relative_to(tests).with_suffix("").parts]))


def pytest_addoption(parser) -> None:
    parser.addoption("--dump-failed-filechecks", action="store_true", help="as in numba-cuda's conftest.py")


def pytest_configure(config) -> None:
    # pytest has put a finder of its own in front, which would read the tests unchanged.
    sys.meta_path.sort(key=lambda finder: not isinstance(finder, _Finder))


def pytest_pycollect_makemodule(module_path, parent):
    return _TestModule.from_parent(parent, path=module_path)


def pytest_collect_directory(path, parent):
    return pytest.Dir.from_parent(parent, path=path)  # a package would be imported under its path's name, too


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = request.config.getoption("dump_failed_filechecks")


def _write(event: str, test: str, **more) -> None:
    if EVENTS in os.environ:
        with open(os.environ[EVENTS], "a") as file:
            file.write(json.dumps({"event": event, "test": test, **more}) + "\n")


def _short(nodeid: str) -> str:
    return nodeid.split("::", 1)[-1]


def pytest_collection_finish(session) -> None:
    for item in session.items:
        _write("found", _short(item.nodeid))


def pytest_runtest_logstart(nodeid: str, location) -> None:
    _write("start", _short(nodeid))


def pytest_runtest_logfinish(nodeid: str, location) -> None:
    _write("end", _short(nodeid))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if call.excinfo is not None and report.failed:
        error = call.excinfo.value
        report.numba_tests = {
            "error": type(error).__name__,
            "classes": [kind.__name__ for kind in type(error).__mro__],
            "message": str(error)[:2000],
            "raised_in": str(call.excinfo.traceback[-1].path),
        }


def pytest_runtest_logreport(report) -> None:
    details = getattr(report, "numba_tests", None)
    if report.skipped:
        expected = hasattr(report, "wasxfail")
        reason = report.wasxfail if expected else str(report.longrepr[-1] if report.longrepr else "")
        _write("outcome", _short(report.nodeid), outcome="xfailed" if expected else "skipped", reason=reason)
    elif report.failed:
        text = "" if details else str(report.longrepr)[-2000:]
        _write("outcome", _short(report.nodeid), outcome="failed", **(details or {"message": text}))
    elif report.when == "call":
        _write("outcome", _short(report.nodeid), outcome="passed", seconds=round(report.duration, 2))


def pytest_collectreport(report) -> None:
    if report.failed:
        _write("collect", _short(report.nodeid), message=str(report.longrepr)[-2000:])
    elif report.skipped:
        _write("collect_skip", _short(report.nodeid), message=str(report.longrepr[-1]))
