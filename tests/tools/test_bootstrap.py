"""Setting up a fresh machine: which Python, which pinned set, what happens when something is missing or breaks off."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from warplab.paths import COURSE


def load(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", COURSE / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bootstrap = load("bootstrap")
environment = load("environment")


# Which Python


@pytest.fixture
def interpreter(tmp_path):
    """interpreter("3 8 18", has_venv) -> path of a command that answers the probe as that Python would."""

    def make(version: str, complete: bool = True, name: str = "") -> str:
        path = tmp_path / (name or "python" + version.replace(" ", "."))
        path.write_text(f"#!/bin/sh\necho '{version} {int(complete)}'\necho /opt/{path.name}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_old_pythons_can_read_the_bootstrap():
    tree = ast.parse((COURSE / "tools" / "bootstrap.py").read_text(), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Starred, ast.Nonlocal, ast.AsyncFunctionDef, ast.Match)
    for node in ast.walk(tree):
        assert not isinstance(node, newer), f"line {node.lineno}"
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert not node.args.kwonlyargs
            assert all(argument.annotation is None for argument in node.args.args)
        assert not (isinstance(node, ast.Raise) and node.cause), f"line {node.lineno}"


def test_first_python_in_range_is_taken(interpreter):
    found = bootstrap.choose([interpreter("3 8 18"), "no-such-python", interpreter("3 14 0"), interpreter("3 12 4")])
    assert found == ("/opt/python3.12.4", None)


@pytest.mark.parametrize("version", ["2 7 18", "3 8 18", "3 10 13"])
def test_too_old(interpreter, version):
    path, problem = bootstrap.choose([interpreter(version)])
    assert path is None
    assert problem.startswith("Python 3.11 or newer needed")
    assert version.replace(" ", ".") in problem
    assert "sudo apt install python3.12" in problem


def test_too_new(interpreter):
    _, problem = bootstrap.choose([interpreter("3 14 0")])
    assert problem.startswith("Python 3.14.0 is too new: TensorFlow has no package for it")


def test_venv_missing(interpreter):
    """As on Debian, where python3-venv is a package of its own. It is told in preference to an old Python's age."""
    _, problem = bootstrap.choose([interpreter("3 8 18"), interpreter("3 11 2", complete=False)])
    assert "lacks its venv module" in problem
    assert "sudo apt install python3.11-venv" in problem


def test_python_that_does_not_run(tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho 'pyenv: python3: command not found' >&2\nexit 127\n")
    broken.chmod(0o755)
    _, problem = bootstrap.choose([str(broken), "no-such-python"])
    assert "no Python that runs" in problem


def test_named_python_is_used_or_refused_but_never_replaced(interpreter):
    old = interpreter("3 8 18")
    process = subprocess.run(
        [sys.executable, COURSE / "tools" / "bootstrap.py"],
        env={**os.environ, "PYTHON": old},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: Python 3.11 or newer needed: {old} is Python 3.8.18.")
    assert "Traceback" not in process.stderr


def test_make_without_any_python(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "make", "id"):
        (tools / tool).symlink_to(shutil.which(tool))
    process = subprocess.run(["make", "setup"], cwd=COURSE, env={"PATH": str(tools)}, capture_output=True, text=True)
    assert process.returncode != 0
    assert "error: no Python found. Warp Lab needs Python 3.11, 3.12 or 3.13." in process.stderr


# Which machine


@pytest.mark.parametrize(("driver", "kind"), [(True, "gpu"), (False, "cpu")])
def test_pinned_set_follows_the_driver(monkeypatch, driver, kind):
    monkeypatch.delenv("WARPLAB_REQUIREMENTS", raising=False)
    monkeypatch.setattr(environment, "has_nvidia_driver", lambda: driver)
    assert environment.chosen_set()[0] == kind


def test_pinned_set_can_be_forced(monkeypatch):
    monkeypatch.setattr(environment, "has_nvidia_driver", lambda: False)
    monkeypatch.setenv("WARPLAB_REQUIREMENTS", "gpu")
    assert environment.chosen_set() == ("gpu", "WARPLAB_REQUIREMENTS=gpu")
    monkeypatch.setenv("WARPLAB_REQUIREMENTS", "cuda")
    with pytest.raises(environment.SetupError, match="'cuda'; set it to cpu or gpu"):
        environment.chosen_set()


def test_full_disk_is_told_before_anything_is_installed(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda folder: usage(10**12, 0, 10**9))
    monkeypatch.setattr(environment, "directory_size", lambda folder: 0)
    with pytest.raises(environment.SetupError, match=r"not enough disk: .* needs \d+\.\d GB free .* has 1\.0 GB"):
        environment.check_disk("cpu")


def test_enough_disk(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda folder: usage(10**12, 0, 6 * 10**9))
    monkeypatch.setattr(environment, "directory_size", lambda folder: 0)
    environment.check_disk("cpu")
    with pytest.raises(environment.SetupError):
        environment.check_disk("gpu")


@pytest.mark.parametrize(
    ("machine", "libc", "words"),
    [
        ("aarch64", ("glibc", "2.36"), "no tensorflow-cpu package for aarch64"),
        ("x86_64", ("", ""), "glibc 2.28 or newer"),
    ],
)
def test_machine_without_packages(monkeypatch, machine, libc, words):
    monkeypatch.setattr(environment.platform, "machine", lambda: machine)
    monkeypatch.setattr(environment.platform, "libc_ver", lambda: libc)
    with pytest.raises(environment.SetupError, match=words):
        environment.check_machine("cpu")


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("NewConnectionError('<...>: Failed to establish a new connection')", "could not reach its package index"),
        ("ERROR: something else", "pip failed with status 2"),
    ],
)
def test_failure_of_pip_is_explained(log, words):
    with pytest.raises(environment.SetupError, match=words):
        environment.fail(2, log)


# The whole set-up, on a small tree with one small wheel


def wheel(folder: Path, version: str) -> None:
    with zipfile.ZipFile(folder / f"tiny-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny.py", f"version = {version!r}\n")
        info = f"tiny-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def tree(tmp_path):
    """A course of one module and one pinned package, with an index of wheels beside it."""
    (tmp_path / "course" / "tools").mkdir(parents=True)
    for name in ("bootstrap.py", "environment.py"):
        shutil.copy(COURSE / "tools" / name, tmp_path / "course" / "tools")
    (tmp_path / "course" / "pyproject.toml").write_text("")
    (tmp_path / "course" / "lesson.py").write_text("")
    (tmp_path / "course" / "requirements.txt").write_text("# by make pins\ntiny==1.0\n")
    (tmp_path / "wheels").mkdir()
    wheel(tmp_path / "wheels", "1.0")
    return tmp_path / "course"


def set_up(tree: Path, **more: str) -> subprocess.CompletedProcess:
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tree.parent / "wheels")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON", "WARPLAB_"))}
    return subprocess.run(
        [sys.executable, tree / "tools" / "bootstrap.py"],
        cwd="/",
        env={**kept, **pip, "WARPLAB_REQUIREMENTS": "cpu", **more},
        capture_output=True,
        text=True,
    )


def run_in(tree: Path, code: str) -> str:
    return subprocess.run([tree / ".venv/bin/python", "-c", code], cwd="/", capture_output=True, text=True).stdout


def test_set_up_once_then_again_when_the_pins_change(tree):
    first = set_up(tree)
    assert first.returncode == 0, first.stderr
    assert "[1/3]" in first.stdout
    assert "Ready after" in first.stdout
    assert run_in(tree, "import tiny, lesson; print(tiny.version)") == "1.0\n"

    second = set_up(tree)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")

    wheel(tree.parent / "wheels", "2.0")
    (tree / "requirements.txt").write_text("tiny==2.0\n")
    third = set_up(tree)
    assert "requirements.txt has changed" in third.stdout
    assert run_in(tree, "import tiny; print(tiny.version)") == "2.0\n"

    moved = tree.rename(tree.with_name("elsewhere"))
    assert "the folder was moved" in set_up(moved).stdout
    assert run_in(moved, "import lesson; print(lesson.__file__)") == f"{moved}/lesson.py\n"


def test_interrupted_set_up_is_redone(tree):
    """Interrupted while pip installs: what is there is a .venv whose stamp is not complete."""
    (tree.parent / "wheels" / "tiny-1.0-py3-none-any.whl").rename(tree.parent / "away.whl")
    assert set_up(tree).returncode == 1
    assert json.loads((tree / ".venv" / "warplab-setup.json").read_text()) == {"complete": False}

    (tree.parent / "away.whl").rename(tree.parent / "wheels" / "tiny-1.0-py3-none-any.whl")
    again = set_up(tree)
    assert "an earlier set-up was not finished" in again.stdout
    assert again.returncode == 0, again.stderr
    assert run_in(tree, "import tiny; print(tiny.version)") == "1.0\n"


def test_no_network(tree):
    """An index at which nothing listens."""
    process = set_up(tree, PIP_NO_INDEX="0", PIP_FIND_LINKS="", PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0")
    assert process.returncode == 1
    assert "error: pip could not reach its package index" in process.stderr
    assert "No matching distribution found for tiny==1.0" in process.stderr  # pip's own words
    assert "Traceback" not in process.stderr


def test_environment_made_by_hand_is_adopted_only_if_whole(tree):
    subprocess.run([sys.executable, "-m", "venv", tree / ".venv"], check=True)
    refused = set_up(tree)
    assert refused.returncode == 1
    assert "error: .venv was made by hand and lacks tiny==1.0" in refused.stderr
    assert (tree / ".venv" / "bin" / "python").exists()

    index = ["--no-index", "--find-links", tree.parent / "wheels"]
    subprocess.run([tree / ".venv/bin/pip", "install", "-q", *index, "tiny==1.0"], check=True)
    adopted = set_up(tree)
    assert adopted.returncode == 0, adopted.stderr
    assert "holds all of requirements.txt" in adopted.stdout
    assert set_up(tree).stdout == ""
