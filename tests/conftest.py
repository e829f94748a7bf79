"""What all tests share: figures without a screen, hypothesis without time limits, the mark `gpu`."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
# Tests neither see nor change what the course keeps of whoever runs them.
os.environ["WARPLAB_MINE"] = tempfile.mkdtemp(prefix="warplab-mine-")

# CI and containers run them as root with a Python in /root, where `grade` refuses without bubblewrap.
os.environ["WARPLAB_SUBMISSIONS_READ"] = "all"
# The code of a thousand small kernels would push out a user's own.
os.environ["WARPLAB_KEEP_CODE"] = str(Path(__file__).resolve().parents[1] / ".kept_code")

import pytest
from hypothesis import settings

from tests.support import run_record, worker_memory
from warplab.hardware import backend

# Importing nbformat takes 2 s less without it; see warpcourse/grading/__init__.py.
sys.modules.setdefault("rfc3987_syntax", None)

# The first example of a test may compile a kernel, which takes longer than hypothesis' limit of 200 ms.
# One seed, so that a run that was green stays so; `explore` (make test-all) draws anew, and prints what repeats a find.
settings.register_profile("one-seed", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("one-seed")

MAIN = sys.modules["__main__"]


@pytest.fixture(autouse=True)
def _pytest_stays_the_main_module():
    """An IPython shell puts its own there; a shell that was reset leaves it empty, and `spawn` cannot start from it."""
    sys.modules["__main__"] = MAIN


@pytest.fixture(autouse=True, scope="module")
def _a_file_leaves_no_shell_and_little_memory() -> Iterator[None]:
    """What `get_ipython` answers decides what own_work and errors do, also for the grader's tests."""
    yield
    with run_record.shared():
        if shell := sys.modules.get("IPython.core.interactiveshell"):
            shell.InteractiveShell.clear_instance()
        worker_memory.give_back()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where WARPLAB_NO_SKIPS asks that nothing is skipped, neither a test nor a file."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("WARPLAB_NO_SKIPS") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("tensorflow") is None)


def pytest_collection() -> None:
    """Let no search for garbage, a dozen here and one after each file, pass over all that collection makes."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked gpu without a GPU, but fail it where `-m gpu` asked for it: nothing passes unrun.

    TensorFlow is set up here, once in a process with the two devices that one lab asks for, as the fixtures of a
    module may run it.
    """
    if item.get_closest_marker("gpu") and (problem := backend.gpu_problem()[0]) is not None:
        if item.config.option.markexpr == "gpu":
            pytest.fail(f"needs an NVIDIA GPU: {problem}", pytrace=False)
        pytest.skip(f"needs an NVIDIA GPU: {problem}")
    if item.get_closest_marker("tensorflow"):
        importlib.import_module("warpcourse.bench.tensorflow_start").start(devices=2)
        worker_memory.let_go_of_libraries()
