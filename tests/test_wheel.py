"""`pip install warplab`: the wheel in an environment outside the checkout, with its base dependencies and no more."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

import warplab
from tests.support import base_environment
from warpcourse.paths import COURSE

MB = 10**6
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", (COURSE / "warplab" / "README.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return base_environment.build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def python(tmp_path_factory, wheel):
    return base_environment.environment(tmp_path_factory.mktemp("base") / "venv", wheel)


@pytest.fixture
def course(python, tmp_path):
    """Where the course's wheel is installed beside the engine's, for one test."""
    wheel = base_environment.build(tmp_path / "wheels", COURSE / "warpcourse")
    (site,) = python.parent.parent.glob("lib/python3.*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    yield site
    for folder in site.glob("warpcourse*"):
        shutil.rmtree(folder)


@pytest.fixture
def run(python, tmp_path):
    """run(code or ["-m", ...]) -> the finished process, in an empty folder and without this process's settings."""

    def start(code):
        settings = ("PYTHON", "WARPLAB", "NUMBA", "CUDA")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
        arguments = ["-c", code] if isinstance(code, str) else code
        return subprocess.run([python, *arguments], capture_output=True, text=True, cwd=tmp_path, env=clean)

    return start


def contents(wheel: Path) -> tuple[set[str], str]:
    """The files of a wheel but for its own description, and that."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return {name for name in names if ".dist-info/" not in name}, archive.read(metadata).decode()


def of_repository(folder: str) -> set[str]:
    """The files of a folder that are the repository's, or are to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    listed = subprocess.run(command, cwd=COURSE, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (COURSE / name).exists()}


def test_the_wheel_is_the_engine_and_nothing_else(wheel):
    files, metadata = contents(wheel)
    recordings = {name for name in of_repository("warplab/estimating") if "/sweeps" in name}
    assert len(recordings) == 2
    assert files == of_repository("warplab") - recordings - {"warplab/README.md"}
    assert wheel.stat().st_size <= 1 * MB
    assert f"Version: {warplab.__version__}\n" in metadata
    assert "License-File: NOTICE\n" in metadata


def test_the_page_tells_the_wheels_size(wheel):
    """What packages need, which the index decides, evidence/tests/test_wheel_page.py holds to a recording."""
    page = (COURSE / "warplab" / "README.md").read_text(encoding="utf-8")
    said = re.search(r"The wheel itself has ([\d.]+) MB", page)
    assert float(said[1]) == pytest.approx(wheel.stat().st_size / MB, abs=0.015)


def test_the_courses_wheel_is_warpcourse_and_needs_the_engine(tmp_path):
    files, metadata = contents(base_environment.build(tmp_path, COURSE / "warpcourse"))
    assert files == of_repository("warpcourse") - {"warpcourse/pyproject.toml"}
    assert f"Version: {warplab.__version__}\n" in metadata
    assert "Requires-Dist: warplab[" in metadata


def test_the_base_is_small_and_lacks_numba_and_scipy():
    """By the pinned versions, as they are installed here: what the package index would give today, evidence/wheel.py
    measures."""
    sizes = base_environment.bytes_of(base_environment.base())
    assert not {"numba", "numba-cuda", "llvmlite", "scipy", "matplotlib", "cupy-cuda13x"} & sizes.keys()
    assert {"numpy", "ml-dtypes", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-crt"} <= sizes.keys()
    assert sum(sizes.values()) <= 500 * MB, sizes
    if platform.machine() == "x86_64":
        readme = (COURSE / "warplab" / "README.md").read_text(encoding="utf-8")
        assert f"NVIDIA's compiler of CUDA C++, is {sizes['nvidia-cuda-nvrtc'] / MB:.0f}. " in readme


def test_it_is_imported_from_where_it_is_installed(run, python):
    done = run("import warplab, sys; print(warplab.__file__, warplab.__version__, 'numpy' in sys.modules)")
    place, version, numpy = done.stdout.split()
    assert Path(place).is_relative_to(python.parent.parent)
    assert (version, numpy) == (warplab.__version__, "False")


def test_the_readmes_kernel_runs_and_is_counted(run):
    done = run(EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^global load sectors +125  l1tex__", done.stdout, re.MULTILINE)


def test_a_defect_is_reported_with_its_line(run):
    done = run(EXAMPLE.replace("i < n", "i <= n"))
    assert done.returncode == 1
    assert "IllegalAddress" in done.stderr
    assert "line 4" in done.stderr
    assert "Is a guard missing (`if (i < n)`)" in done.stderr


def test_cupys_stand_in_and_the_engines_headers(run):
    done = run(
        "import numpy as np\n"
        "from warplab import cp\n"
        "from warplab.compile.headers import COURSE_HEADERS\n"
        "code = '#include <warplab/hopper.cuh>\\nextern \"C\" __global__ void one(float* x) { x[threadIdx.x] = 1; }'\n"
        "x = cp.zeros(32, np.float32)\n"
        "cp.RawKernel(code, 'one', (f'-I{COURSE_HEADERS}',))((1,), (32,), (x,))\n"
        "print(float(x.sum()))\n"
    )
    assert done.stdout == "32.0\n", done.stderr


@pytest.mark.parametrize(
    ("code", "needs", "extra"),
    [
        ("from warplab import cuda", "warplab.cuda needs the package numba", "numba"),
        ("import warplab.dropin.choice as choice; choice.load('cuda')", "needs the package numba", "numba"),
        ("import warplab; warplab.draw_banks", "warplab.draw_banks needs the package matplotlib", "notebook"),
        (f"{EXAMPLE}\nfrom warplab import sass\nprint(sass(p))", "nvdisasm", "estimate"),
        (f"{EXAMPLE}\nfrom warplab import machine_counts\nmachine_counts(p)", "nvdisasm", "estimate"),
        (f"{EXAMPLE}\nfrom warplab import estimate\nprint(estimate(p, 'H100'))", "nvdisasm", "estimate"),
    ],
)
def test_a_missing_extra_is_named_in_one_sentence(run, code, needs, extra):
    done = run(code)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert needs in last, done.stderr
    assert f'pip install "warplab[{extra}]"' in last


def test_help_and_the_refusal_of_a_class_command(run):
    done = run(["-m", "warplab", "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m warplab COMMAND\n")
    done = run(["-m", "warplab", "grade", "01"])
    assert done.returncode == 2
    assert "there is no command 'grade' without the package warpcourse" in done.stderr
    assert "clone it and run make lab there" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["lab", "doctor", "check 01", "progress", "grade 01", "similar 01"])
def test_without_the_lessons_a_command_of_the_course_says_so(run, python, course, command):
    done = run(["-m", "warplab", *command.split()])
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    name = command.partition(" ")[0]
    assert sentence.startswith(f"error: {name} needs the lessons, which the package warpcourse, installed in {course}")
    assert sentence.endswith("clone the course's repository and run make lab there.")


def test_no_module_of_the_base_imports_a_package_of_an_extra(run):
    """Each module is imported; those of the extras fail for want of their packages, and only those."""
    done = run(
        "import importlib, pkgutil, sys, warplab\n"
        "from warplab.extras import EXTRAS\n"
        "failed = set()\n"
        "for module in pkgutil.walk_packages(warplab.__path__, 'warplab.', onerror=lambda name: None):\n"
        "    if not module.name.endswith(('__main__', 'sitecustomize', 'pytest_plugin')):\n"
        "        try:\n"
        "            importlib.import_module(module.name)\n"
        "        except (ImportError, RuntimeError) as error:\n"
        "            failed.add(module.name)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {*EXTRAS, 'llvmlite'}))\n"
        "print(*sorted(failed), sep='\\n')\n"
    )
    loaded, *failed = done.stdout.splitlines()
    assert loaded == "[]", done.stderr
    of_extras = re.compile(r"warplab\.(draw\.\w+|compile\.numba_internals|dropin\.(numba_cuda|triton)[\w.]*)")
    assert [name for name in failed if not of_extras.fullmatch(name)] == []
    assert "warplab.draw.banks" in failed
