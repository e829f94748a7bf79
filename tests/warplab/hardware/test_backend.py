"""Which backend is chosen, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machines import GOOD, NOTHING, OLD, VOLTA, pretending
from warplab.hardware import backend, driver

COURSE = Path(__file__).parents[3]


@pytest.fixture
def machine(monkeypatch):
    yield from pretending(monkeypatch)


def test_backend_is_the_gpu_where_all_fits(machine):
    machine(GOOD)
    assert backend.name() == "gpu"
    assert backend.reason() == "NVIDIA H100 80GB HBM3, driver 580.95.05 for CUDA 13.0"


@pytest.mark.parametrize(
    ("found", "libraries", "words"),
    [
        (NOTHING, (None, ""), "no NVIDIA driver"),
        (OLD, (None, ""), "too old: 550.54.15 for CUDA 12.4"),
        (VOLTA, (None, ""), "compute capability 7.0"),
        (driver.Driver("580.95.05", (13, 0), ()), (None, ""), "finds no GPU"),
        (GOOD, ("the package cupy-cuda13x is not installed", "…"), "cupy-cuda13x is not installed"),
    ],
)
def test_backend_is_the_simulator_where_something_does_not(machine, found, libraries, words):
    machine(found, libraries)
    assert backend.name() == "simulator"
    assert words in backend.reason()


def test_backend_can_be_forced_to_the_simulator_without_asking_the_driver(machine, monkeypatch):
    monkeypatch.setattr(driver, "query", lambda: pytest.fail("asked the driver"))
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")
    assert (backend.name(), backend.reason()) == ("simulator", "WARPLAB_BACKEND=simulator")


def test_gpu_demanded_but_absent_is_an_error_that_says_why(machine, monkeypatch):
    machine(OLD)
    monkeypatch.setenv("WARPLAB_BACKEND", "gpu")
    with pytest.raises(backend.BackendError, match=r"too old: 550\.54\.15.*Install NVIDIA's driver, branch 580"):
        backend.name()


def test_unknown_backend_is_an_error(machine, monkeypatch):
    monkeypatch.setenv("WARPLAB_BACKEND", "cuda")
    with pytest.raises(backend.BackendError, match="WARPLAB_BACKEND is 'cuda'; set it to gpu or simulator"):
        backend.name()


def test_announcement_comes_once(machine, capsys):
    machine(NOTHING)
    backend.announce()
    backend.announce()
    output = capsys.readouterr()
    assert output.err + output.out == (
        "Warp Lab runs kernels on the simulator: no NVIDIA driver (libcuda.so.1 not found).\n"
    )


def test_choosing_loads_neither_cupy_nor_numba_where_there_is_no_driver():
    code = (
        "import sys; from warplab import backend; backend.name(); print(sorted({'cupy', 'numba'} & set(sys.modules)))"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""} | {"WARPLAB_BACKEND": ""}
    process = subprocess.run([sys.executable, "-c", code], cwd=COURSE, env=environment, capture_output=True, text=True)
    assert process.stdout == "[]\n", process.stderr


def test_numbas_own_simulator_is_no_gpu(monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert "NUMBA_ENABLE_CUDASIM" in backend.library_problem()[0]


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda name: None if name == "cupy" else object())
    assert backend.library_problem()[0] == "the package cupy-cuda13x is not installed"
