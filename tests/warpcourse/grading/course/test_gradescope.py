"""The autograder for Gradescope: exported, laid out as Gradescope does, and run on submissions of all kinds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests.support.class_harness import CANARY, RIGHT, TINY, answered, tiny_course
from warpcourse.grading.course import gradescope
from warpcourse.grading.sandbox.isolation import LimitsOnly, find
from warpcourse.paths import COURSE
from warplab.__main__ import main

WRONG = "def double(x):\n    return {2: 4}.get(x, x)"  # fails the hidden part of the first test
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a container's root, who becomes another user, is needed")

# Writes results of its own, now and after the grading; reads what grades it; ends its parent; prints much.
HOSTILE = """
import glob, json, os, signal, time
def double(x):
    return x
root = {root!r}
full = json.dumps({{"score": 3, "tests": []}})
def write():
    for place in glob.glob(root + "/results*"):
        for name in ("results.json", ".results.json.tmp"):
            try:
                with open(place + "/" + name, "w") as file:
                    file.write(full)
                print("WROTE", place)
            except OSError:
                pass
for pattern in ("source/solutions/*/*", "source/grading/*", "submission_metadata.json", "submission/*"):
    for path in glob.glob(root + "/" + pattern):
        try:
            print("READ", path, open(path, "rb").read())
        except OSError:
            pass
write()
if os.fork() == 0:
    os.setsid()
    for _ in range(1200):
        write()
        time.sleep(0.05)
for process in (os.getppid(), 1):
    try:
        os.kill(process, signal.SIGTERM)
    except OSError:
        pass
for _ in range(100):
    print("x" * 100_000)
"""


@pytest.fixture(scope="module")
def autograder(tmp_path_factory):
    """The folder that stands for /autograder, where any user may write results before the grading begins."""
    course = tiny_course(tmp_path_factory.mktemp("course"))
    archive = course / "autograder.zip"
    assert main(["export", "gradescope", TINY, "--course", str(course), "--out", str(archive)]) == 0
    root = Path(tempfile.mkdtemp(prefix="autograder-"))  # which other users reach, unlike pytest's own
    root.chmod(0o755)
    (root / "source").mkdir()
    # As unzip does, by which files have the modes that the archive gives.
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            Path(opened.extract(info, root / "source")).chmod(info.external_attr >> 16 or 0o644)
    (root / "source" / ".venv").symlink_to(sys.prefix)  # what setup.sh makes
    (root / "submission_metadata.json").write_text('{"id": 1}')
    yield root, course
    shutil.rmtree(root)


def ran(root: Path, files: dict[str, bytes], sandbox: str = "") -> subprocess.CompletedProcess:
    """Run run_autograder on a submission."""
    for name in ("results", "submission"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
        (root / name).chmod(0o777)
    for name, content in files.items():
        (root / "submission" / name).write_bytes(content)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"AUTOGRADER": str(root)}
    environment |= {"WARPLAB_SANDBOX": sandbox} if sandbox else {}
    command = ["bash", str(root / "source" / "run_autograder")]
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)


def graded(root: Path, files: dict[str, bytes], sandbox: str = "") -> dict:
    """Run run_autograder on a submission and return its results; skip the test where it refuses, as others hold."""
    if (sandbox or isinstance(find(), LimitsOnly)) and (os.geteuid() != 0 or only_root_reads_python()):
        pytest.skip("without bubblewrap, it grades as root alone, by a Python that others can read")
    done = ran(root, files, sandbox)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((root / "results" / "results.json").read_text())


def points(results: dict) -> list[tuple[float, float, str]]:
    assert "score" not in results  # it would stand in for the sum of the tests
    return [(test["score"], test["max_score"], test["status"]) for test in results["tests"]]


def notebook(course: Path, answer: str) -> bytes:
    return nbformat.writes(answered(course, answer)).encode()


def only_root_reads_python() -> bool:
    """Return whether others are kept from a folder above this Python, such as /root."""
    place = Path(os.path.realpath(sys.executable))
    return any(not folder.stat().st_mode & 0o001 for folder in place.parents)


NONE = [(0, 1, "failed"), (0, 2, "failed")]


def test_the_zip_is_what_gradescope_unpacks_and_closed_to_learners(autograder):
    root, course = autograder
    source = root / "source"
    assert (course / "autograder.zip").stat().st_mode & 0o777 == 0o600
    for name in ("setup.sh", "run_autograder"):
        assert (source / name).stat().st_mode & 0o777 == 0o755
        subprocess.run(["bash", "-n", source / name], check=True)
    assert (source / "grading" / "secret").stat().st_mode & 0o777 == 0o600
    assert (source / "requirements-small.txt").exists()
    assert not list(source.rglob("__pycache__"))
    assert [path.name for path in (source / "solutions").iterdir()] == [TINY]


def test_the_layer_is_the_labs(tmp_path):
    for number, pins in (("01", "requirements-small.txt"), ("09", "requirements.txt")):
        assert main(["export", "gradescope", number, "--out", str(tmp_path / "x.zip"), "--course", str(COURSE)]) == 0
        with zipfile.ZipFile(tmp_path / "x.zip") as archive:
            assert [name for name in archive.namelist() if name.startswith("requirements")] == [pins]
            wanted = "small" if number == "01" else "cpu"
            assert f"WARPLAB_REQUIREMENTS={wanted} " in archive.read("setup.sh").decode()


def test_a_right_answer_has_all_points_whatever_its_name(autograder):
    root, course = autograder
    for name in (f"{TINY}.ipynb", f"exercise_{TINY} (1).ipynb"):
        found = graded(root, {name: notebook(course, RIGHT)})
        assert points(found) == [(1, 1, "passed"), (2, 2, "passed")]
        assert found["stdout_visibility"] == "hidden"
    first, second = found["tests"]
    assert (first["number"], second["number"]) == ("1.1", "1.2")
    assert first["name"] == "1. Double: test-one (with hidden tests)"


def test_a_wrong_answer_is_told_why_and_no_hidden_input(autograder):
    root, course = autograder
    found = graded(root, {f"{TINY}.ipynb": notebook(course, WRONG)})
    assert points(found) == NONE
    assert found["tests"][0]["output"] == "A hidden test fails: the result is wrong."
    assert CANARY not in json.dumps(found)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "There is no notebook in what was handed in."),
        ({"answers.txt": b"42"}, "There is no notebook in what was handed in: answers.txt."),
        ({"\x1b[2J\u202etxt.a": b"42"}, r"in what was handed in: \x1b[2J\u202etxt.a."),
        ({"homework.ipynb": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'}, "no cell of this"),
    ],
)
def test_a_missing_or_foreign_notebook_is_named(autograder, files, said):
    root, _ = autograder
    found = graded(root, files)
    assert points(found) == NONE
    assert said in found["output"]
    if not any(name.endswith(".ipynb") for name in files):
        assert f"Hand in {TINY}.ipynb" in found["output"]


@pytest.mark.parametrize(
    "sandbox", [pytest.param("", marks=pytest.mark.sandbox), pytest.param("limits", marks=AS_ROOT)]
)
def test_a_hostile_notebook_gets_no_points_and_reads_no_answers(autograder, sandbox):
    root, course = autograder
    found = graded(root, {f"{TINY}.ipynb": notebook(course, HOSTILE.format(root=str(root)))}, sandbox)
    assert points(found) == NONE
    written = (root / "results" / "results.json").read_text()
    assert json.loads(written) == found
    assert [path.name for path in (root / "results").iterdir()] == ["results.json"]
    (executed,) = (root / "source" / "grading" / "autograded").rglob("*.ipynb")
    cells = nbformat.read(executed, as_version=4).cells
    printed = "".join(output.get("text", "") for cell in cells for output in cell.get("outputs", ()))
    assert "xxxxx" in printed, "the attack did not run to its end"
    assert not [line[:200] for line in printed.splitlines() if line.startswith("READ")]
    assert not [line for line in printed.splitlines() if line.startswith("WROTE")]


@AS_ROOT
def test_a_python_that_only_root_reads_grades_nothing_without_bubblewrap(autograder):
    root, course = autograder
    done = ran(root, {f"{TINY}.ipynb": notebook(course, RIGHT)}, "limits")
    assert ("so a submission would read all files" in done.stdout) == only_root_reads_python()
    assert (root / "results" / "results.json").exists() == (not only_root_reads_python())


def test_without_bubblewrap_only_root_grades(autograder, monkeypatch, capsys):
    root, _ = autograder
    monkeypatch.setattr(gradescope, "find", LimitsOnly)
    monkeypatch.setattr(gradescope.os, "geteuid", lambda: 1000)
    (root / "results").mkdir(exist_ok=True)  # which no test before this one may have made
    (root / "results" / "results.json").write_text('{"score": 3}')
    assert gradescope.main([str(root)]) == 1
    assert "without bubblewrap only root" in capsys.readouterr().out
    assert not (root / "results" / "results.json").exists()


def test_an_export_anew_closes_a_zip_that_others_could_read(tmp_path):
    course, archive = tiny_course(tmp_path / "course"), tmp_path / "old.zip"
    archive.write_bytes(b"old")
    archive.chmod(0o644)
    assert main(["export", "gradescope", TINY, "--course", str(course), "--out", str(archive)]) == 0
    assert archive.stat().st_mode & 0o777 == 0o600
    assert zipfile.is_zipfile(archive)
