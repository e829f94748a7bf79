"""Setting up a fresh machine: which Python, which pinned set, what happens when something is missing or breaks off."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from tools import bootstrap, environment, run_uv
from warpcourse.paths import COURSE

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
    found = bootstrap.choose([interpreter("3 8 18"), "no-such-python", interpreter("3 15 0"), interpreter("3 12 4")])
    assert found == ("/opt/python3.12.4", None)


def test_a_python_without_tensorflow_is_taken_where_there_is_no_other(interpreter):
    new, old = interpreter("3 14 1"), interpreter("3 10 2")
    assert bootstrap.choose([new, interpreter("3 12 4")]) == ("/opt/python3.12.4", None)
    assert bootstrap.choose([old, new, old]) == ("/opt/python3.14.1", None)


@pytest.mark.parametrize("version", ["2 7 18", "3 8 18", "3 10 13"])
def test_too_old(interpreter, version):
    path, problem = bootstrap.choose([interpreter(version)])
    assert path is None
    assert problem.startswith("Python 3.11 or newer needed")
    assert version.replace(" ", ".") in problem
    assert "sudo apt install python3.12" in problem


def test_too_new(interpreter):
    _, problem = bootstrap.choose([interpreter("3 15 0")])
    assert problem.startswith("Python 3.15.0 is too new: nobody has tried Warp Lab on it")


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
    assert "error: no Python found. Warp Lab needs Python 3.11, 3.12, 3.13 or 3.14." in process.stderr


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
    monkeypatch.setenv("WARPLAB_REQUIREMENTS", "")  # as good as unset
    assert environment.chosen_set(["01"], ()) == (
        "small",
        "there is no NVIDIA driver and labs 00 to 06, 10 and 13 need no more",
    )
    monkeypatch.setenv("WARPLAB_REQUIREMENTS", "cuda")
    with pytest.raises(environment.SetupError, match="'cuda'; set it to small, cpu or gpu"):
        environment.chosen_set()


@pytest.mark.parametrize("labs", [["nonsense"], ["07,09"], ["01", "77"], ["-1"]])
def test_what_is_no_lab_installs_nothing(monkeypatch, labs):
    monkeypatch.setattr(environment, "has_nvidia_driver", lambda: False)
    monkeypatch.delenv("WARPLAB_REQUIREMENTS", raising=False)
    with pytest.raises(environment.SetupError, match=f"LABS has {labs[-1]}, which is no lab"):
        environment.chosen_set(labs)
    assert [environment.chosen_set(one)[0] for one in (["all"], ["7"], ["1"], [])] == ["cpu", "cpu", "small", "small"]


@pytest.mark.parametrize(("free", "kind", "fits"), [(1, "cpu", False), (6, "cpu", True), (6, "gpu", False)])
def test_a_disk_that_is_too_small_is_named_before_packages_are_fetched(monkeypatch, tmp_path, free, kind, fits):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda folder: usage(10**12, 0, free * 10**9))
    monkeypatch.setattr(environment, "uv_cache", lambda: tmp_path)
    if fits:
        environment.check_disk(kind)
        return
    with pytest.raises(environment.SetupError, match=rf"not enough disk: .* needs \d+\.\d GB .* has {free}\.0 GB"):
        environment.check_disk(kind)


@pytest.mark.parametrize(
    ("machine", "libc", "words"),
    [
        ("riscv64", ("glibc", "2.36"), "no packages for riscv64"),
        ("x86_64", ("", ""), "glibc 2.28 or newer"),
        ("aarch64", ("glibc", "2.17"), "glibc 2.28 or newer"),
    ],
)
def test_machine_without_packages(monkeypatch, machine, libc, words):
    monkeypatch.setattr(environment.platform, "machine", lambda: machine)
    monkeypatch.setattr(environment.platform, "libc_ver", lambda: libc)
    with pytest.raises(environment.SetupError, match=words):
        environment.check_machine("cpu")


@pytest.mark.parametrize(
    "said",
    [
        "OSError: [Errno 28] No space left on device",  # pip 23.2, after a traceback
        "  cause: failed to write to file `1286.js`: No space left on device (os error 28)",  # uv 0.13, its cache
        "  cause: failed to copy file from a.js to b.js: No space left on device (os error 28)",  # uv 0.13, .venv
    ],
)
def test_a_full_disk_is_explained(monkeypatch, tmp_path, said):
    """These are the words of both when their disk, a tmpfs of 8 MB, was full."""
    monkeypatch.setattr(environment, "LOG", tmp_path / "setup.log")
    environment.LOG.write_text("Resolved 151 packages\n")
    environment.explain_full_disk()
    environment.LOG.write_text(said)
    with pytest.raises(environment.SetupError, match=r"the disk is full\. Free some .* UV_CACHE_DIR"):
        environment.explain_full_disk()


# pip's configuration, for uv


# As `pip config list` prints it; the strongest level is not always the last.
PIP_SETTINGS = r"""
:env:.trusted-host='three.example'
download.retries='9'
global.extra-index-url='\nhttps://one.example/simple\nhttps://two.example/simple'
global.find-links='/a /b'
global.index-url='https://user:secret@mirror.example/simple'
global.timeout='30'
global.trusted-host='one.example two.example'
install.proxy='http://proxy.example:3128'
install.timeout='40'
"""


def test_uv_is_told_what_pip_is_configured_with():
    assert run_uv.uv_variables(run_uv.pip_settings(PIP_SETTINGS)) == {
        "UV_DEFAULT_INDEX": "https://user:secret@mirror.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INSECURE_HOST": "three.example",
        "UV_HTTP_TIMEOUT": "40",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "ALL_PROXY": "http://proxy.example:3128",
    }


def test_variables_of_uv_win_over_pips_configuration(monkeypatch):
    monkeypatch.setattr(run_uv, "BIN", Path(sys.executable).parent)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("PIP_TIMEOUT", "30")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "50")
    monkeypatch.setenv("PIP_NO_INDEX", "no")
    command, variables = run_uv.uv("pip", "sync")
    assert command[1:] == ["pip", "sync"]
    assert variables["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert variables["UV_HTTP_TIMEOUT"] == "50"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert run_uv.uv("pip", "sync")[0][1:] == ["pip", "sync", "--no-index"]


# When .venv is made anew


def test_an_environment_of_an_older_version_of_the_course_is_made_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "STAMP", tmp_path / "warplab-setup.json")
    stamp = {"set": "cpu", "pins": "0" * 64, "tree": str(COURSE), "python": platform.python_version(), "complete": True}
    environment.STAMP.write_text(json.dumps(stamp))
    assert "older version of the course" in environment.why_anew(environment.read_stamp(), this_python=False)


def test_a_record_that_was_cut_off_reads_as_unfinished(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "STAMP", tmp_path / "warplab-setup.json")
    assert environment.read_stamp() is None
    for text in ("", '{"pins": {"requirements.txt"', "{}"):
        environment.STAMP.write_text(text)
        assert "was not finished" in environment.why_anew(environment.read_stamp(), this_python=False)


def test_an_interrupt_at_any_file_leaves_what_is_known_as_ours(monkeypatch, tmp_path):
    folder = tmp_path / ".venv"
    for name, value in (("VENV", folder), ("STAMP", folder / "warplab-setup.json")):
        monkeypatch.setattr(environment, name, value)
    unlink, left = os.unlink, 0

    def interrupted(*arguments, **more):
        nonlocal left
        unlink(*arguments, **more)
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "unlink", interrupted)
    for files in range(1, 5):
        (folder / "lib").mkdir(parents=True, exist_ok=True)
        for name in ("a", "b", "lib/c", "lib/d"):
            (folder / name).write_text("")
        environment.write_stamp({"pins": {}})
        left = files
        with pytest.raises(KeyboardInterrupt):
            environment.create_venv(environment.read_stamp())
        assert environment.read_stamp() is not None, f"after {files} files"


@pytest.mark.parametrize(
    ("change", "this_python", "words"),
    [
        ({}, False, ""),
        ({}, True, ""),
        ({"tree": "/elsewhere"}, False, "the folder was moved"),
        ({"python": "3.11.0"}, False, "the Python that .venv was made with has changed"),
        ({"python": "3.11.0"}, True, "another Python was asked for"),
    ],
)
def test_when_an_environment_is_made_anew(monkeypatch, change, this_python, words):
    monkeypatch.setattr(environment, "venv_python_version", platform.python_version)
    stamp = {"pins": {}, "tree": str(COURSE), "python": platform.python_version()} | change
    found = environment.why_anew(stamp, this_python)
    assert found == words if not words else words in found
