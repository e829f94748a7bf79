"""What a process needs to run numba-cuda's own tests against the stand-in: the package's import hook, and a plug-in.

For the hook (`warplab.dropin.imports`) these tests count as a program: `from numba import cuda` gives them the
stand-in, and a name of a module of numba.cuda is the stand-in's if that has it and Numba's own if not; so it is in the
Pythons that they start. Numba itself stays as it is. As a plugin of pytest this module also writes one line of JSON per
event to the file named by WARPLAB_TESTS_EVENTS, so that a process that crashes or hangs leaves what it did.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from warplab.dropin import imports

TESTS = "numba.cuda.tests"
EVENTS = "WARPLAB_TESTS_EVENTS"  # not NUMBA_...: a change of such a variable makes Numba read all its settings again


def install() -> None:
    """Let the tests that are imported from now on, and Numba's helpers for tests, use the stand-in."""
    imports.install(tests=[TESTS])
    sys.modules["cupy"] = imports.standin("cupy")  # which without a GPU is a stand-in, too
    imports.standin("numba.cuda.testing")  # whose base classes ask for the device


def replaces(name: str, attribute: str) -> bool:
    """Whether `from NAME import ATTRIBUTE` gives something else than Numba's own."""
    if (name, attribute) == ("numba", "cuda"):
        return True
    try:
        module = imports.standin(name)
        imports.see_to(module, name, attribute)
        return getattr(module, attribute) is not getattr(imports.library(name), attribute)
    except (ImportError, AttributeError):  # the stand-in refuses it, or it is for another platform
        return True


def imported(source: str) -> list[tuple[str, str]]:
    """Return what a test module imports of numba.cuda: modules, and the names imported from them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [alias.name for alias in node.names]
            if node.module == "numba" and "cuda" in names:
                found.append(("numba", "cuda"))
            elif f"{node.module}.".startswith("numba.cuda."):
                found += [(node.module, name) for name in names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "numba.cuda":
            found.append(("numba", "cuda"))
    return found


# -- pytest ------------------------------------------------------------------------------------------------------------


class _TestModule(pytest.Module):
    """A file of tests under its own name: pytest would make one of the file's path and load Numba a second time."""

    def _getobj(self):
        tests = Path(importlib.util.find_spec(TESTS).origin).parent
        return importlib.import_module(".".join([TESTS, *self.path.relative_to(tests).with_suffix("").parts]))


def pytest_addoption(parser) -> None:
    parser.addoption("--dump-failed-filechecks", action="store_true", help="as in numba-cuda's conftest.py")


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
