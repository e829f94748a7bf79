"""Verdicts of answers to exercises, kept from an earlier run; a pytest plugin that says how many were.

A verdict is the message of each test cell that an answer fails. It follows from the answer, the exercise's cells, the
seed, the code that runs them, WARPLAB_... of the environment and the installed packages, and is kept under a hash of
all these in .verdicts/, which git ignores. None is kept if code was edited after this process began, which may have
imported it before or after. Neither a CI (CI=true) nor a GPU keeps or takes any, and WARPLAB_VERDICTS=off makes every
answer run.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.support.tiers import TESTS

COURSE = TESTS.parent
FOLDER = COURSE / ".verdicts"
BEGUN = time.time()  # before any of the code that verdicts depend on was imported
# What the environment says of no verdict: where a learner's copy lies, and whether verdicts are kept.
NO_MATTER = ("WARPLAB_MINE", "WARPLAB_VERDICTS")
DAYS = 30  # after which a verdict that no run has taken goes
taken = 0  # verdicts that this run has not computed
saved = 0.0  # seconds of processor time that those of the current test took when they were computed


def spent() -> float:
    """Return the seconds of processor time of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def verdict(texts: list[str], compute: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Return what `compute` returns, or has returned for the same `texts`: all that it reads but code."""
    global taken, saved
    if not _wanted():
        return compute()
    folders = _folders("\n".join(texts))
    path = FOLDER / hashlib.sha256(json.dumps([_hash(folders), *texts]).encode()).hexdigest()
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        os.utime(path)
        taken, saved = taken + 1, saved + found["seconds"]
        return found["failures"]
    before = spent()
    failures = compute()
    if any(file.stat().st_ctime > BEGUN for file in _files(folders)):
        return failures
    FOLDER.mkdir(exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({"seconds": round(spent() - before, 3), "failures": failures}), encoding="utf-8")
    part.replace(path)
    return failures


@functools.cache
def _wanted() -> bool:
    from warplab.hardware import backend  # not before conftest.py has set the environment

    off = os.environ.get("WARPLAB_VERDICTS") == "off" or os.environ.get("CI", "").lower() in ("true", "1")
    return not off and backend.name() == "simulator"


def _folders(cells: str) -> frozenset[str]:
    """Return the folders of the code that cells run: warplab, and warpcourse and the labs that they name, whole."""
    named = {name.replace(".", "/") for name in re.findall(r"\b(?:kernels\.\w+|digits|warpcourse)\b", cells)}
    named |= set(re.findall(r"\b(?:from|import) (kernels)\b(?!\.)", cells))
    more = {"warpcourse", *(["kernels"] if "digits" in named else [])} if named else set()
    return frozenset({"warplab"} | named | more)


def _files(folders: frozenset[str]) -> list[Path]:
    files = [path for folder in folders for path in (COURSE / folder).rglob("*") if "__pycache__" not in path.parts]
    support = COURSE / "tests" / "support"
    tests = [support.with_name("conftest.py"), support / "verdicts.py", *support.glob("exercise_*.py")]
    return sorted(path for path in {*files, *tests} if path.is_file())


@functools.cache
def _hash(folders: frozenset[str]) -> str:
    found = hashlib.sha256(sys.version.encode())
    found.update("\n".join(sorted(f"{one.name} {one.version}" for one in distributions())).encode())
    settings = {name: value for name, value in os.environ.items() if name.startswith("WARPLAB_")}
    found.update(json.dumps({name: settings[name] for name in sorted(settings) if name not in NO_MATTER}).encode())
    for path in _files(folders):
        found.update(f"{path.relative_to(COURSE)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def seconds_saved() -> float:
    """Return, once, what the verdicts taken since the last call took: what a test takes that computes its own."""
    global saved
    found, saved = saved, 0.0
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["verdicts"] = taken
        return
    for path in FOLDER.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another run has put it in place or removed it
            if time.time() - path.stat().st_mtime > DAYS * 86400:
                path.unlink()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error: object) -> None:
    global taken
    taken += getattr(node, "workeroutput", {}).get("verdicts", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if taken:
        terminalreporter.write_line(f"{taken:,} verdicts kept from an earlier run (WARPLAB_VERDICTS=off computes all)")
