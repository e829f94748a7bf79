"""The doctor's messages, the choice of the backend and the questions to the driver, with stand-ins for machines."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

from warplab import doctor
from warplab.hardware import backend, driver
from warplab.paths import COURSE

H100 = driver.Gpu("NVIDIA H100 80GB HBM3", 80 * 2**30, (9, 0))
V100 = driver.Gpu("Tesla V100-SXM2-16GB", 16 * 2**30, (7, 0))
GOOD = driver.Driver("580.95.05", (13, 0), (H100,))
OLD = driver.Driver("550.54.15", (12, 4), (H100,))
VOLTA = driver.Driver("580.95.05", (13, 0), (V100,))
NOTHING = driver.Driver(problem="no NVIDIA driver (libcuda.so.1 not found)")


def texts(findings, status=None):
    return [f"{finding.text} -> {finding.advice}" for finding in findings if status in (None, finding.status)]


def ptx(version: str) -> str:
    return f"// Cuda compilation tools, release 13.0, V13.0.88\n.version {version}\n.target sm_90\n"


@pytest.fixture
def machine(monkeypatch):
    """machine(driver, libraries=None): pretend that the process runs there."""

    def pretend(found: driver.Driver, libraries: tuple[str | None, str] = (None, "")) -> None:
        monkeypatch.setattr(driver, "query", lambda: found)
        monkeypatch.setattr(backend, "library_problem", lambda: libraries)

    monkeypatch.delenv("WARPLAB_BACKEND", raising=False)
    backend._choose.cache_clear()
    backend.announce.cache_clear()
    yield pretend
    backend._choose.cache_clear()
    backend.announce.cache_clear()


# Backend


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


# Driver


class FakeLibrary:
    """libcuda with one H100, whose calls answer as `status` says."""

    def __init__(self, version=13000, **status):
        self.version, self.status = version, status

    def cuDriverGetVersion(self, out):
        out._obj.value = self.version
        return 0

    def cuInit(self, flags):
        return self.status.get("cuInit", 0)

    def cuDeviceGetCount(self, out):
        out._obj.value = 1
        return self.status.get("cuDeviceGetCount", 0)

    def cuDeviceGet(self, out, index):
        out._obj.value = index
        return 0

    def cuDeviceGetName(self, buffer, size, device):
        buffer.value = b"NVIDIA H100 80GB HBM3"
        return 0

    def cuDeviceTotalMem_v2(self, out, device):
        out._obj.value = 80 * 2**30
        return 0

    def cuDeviceGetAttribute(self, out, attribute, device):
        out._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuGetErrorString(self, status, out):
        out._obj.value = b"system has unsupported display driver / cuda driver combination"
        return 0


@pytest.fixture
def library(monkeypatch):
    """library(libcuda or None, kernel module's version): what driver.query() finds."""

    def pretend(fake, module=None, cards=0):
        def load(name):
            if fake is None:
                raise OSError(name)
            return fake

        monkeypatch.setattr(ctypes, "CDLL", load)
        monkeypatch.setattr(driver, "module_version", lambda: module)
        monkeypatch.setattr(driver, "nvidia_cards", lambda: cards)
        return driver.query.__wrapped__()

    return pretend


def test_driver_and_gpu_are_read(library):
    assert library(FakeLibrary(), "580.95.05") == GOOD


def test_no_driver(library):
    assert library(None) == NOTHING


def test_gpu_without_driver(library):
    found = library(None, cards=1)
    assert "has an NVIDIA GPU but no driver" in found.problem
    assert "branch 580" in found.advice


def test_container_without_the_drivers_library(library):
    found = library(None, "580.95.05")
    assert "libcuda.so.1 is missing" in found.problem
    assert "--gpus all" in found.advice


def test_driver_without_gpu(library):
    assert library(FakeLibrary(cuInit=100)).problem == "the NVIDIA driver finds no GPU"


def test_broken_driver_keeps_its_own_words(library):
    found = library(FakeLibrary(cuInit=803))
    assert "cuInit with error 803: system has unsupported display driver" in found.problem
    assert found.cuda == (13, 0)


# Doctor


def test_gpu_section_lists_hardware():
    assert texts(doctor.gpu_findings(GOOD), "ok") == [
        "driver 580.95.05, supports CUDA 13.0 -> ",
        "NVIDIA H100 80GB HBM3, 80.0 GiB, compute capability 9.0 -> ",
    ]


def test_old_driver_is_a_note_with_what_to_do():
    (line,) = texts(doctor.gpu_findings(OLD), "note")
    assert "too old: 550.54.15 for CUDA 12.4" in line
    assert "branch 580 or newer" in line


def test_volta_is_a_note():
    (line,) = texts(doctor.gpu_findings(VOLTA), "note")
    assert "Tesla V100-SXM2-16GB has compute capability 7.0" in line


def test_ptx_newer_than_the_driver_is_a_note_with_what_to_do():
    (line,) = texts(doctor.compiled("NVRTC", lambda: ptx("9.1"), GOOD), "note")
    assert "PTX 9.1; the driver, for CUDA 13.0, takes PTX up to 9.0" in line
    assert "make setup" in line


@pytest.mark.parametrize(
    ("version", "found"),
    [("9.0", GOOD), ("9.1", driver.Driver("595.10", (13, 1), (H100,))), ("9.1", NOTHING)],
)
def test_ptx_that_the_driver_takes_is_ok(version, found):
    assert [finding.status for finding in doctor.compiled("NVRTC", lambda: ptx(version), found)] == ["ok"]


def test_compiler_that_fails_is_a_problem():
    def broken():
        raise RuntimeError("libnvvm.so.4: cannot open shared object file\nmore")

    (line,) = texts(doctor.compiled("NVVM", broken, NOTHING), "problem")
    assert "RuntimeError: libnvvm.so.4: cannot open shared object file" in line
    assert "make setup" in line


def test_real_compilers_write_ptx_that_a_driver_for_cuda_13_0_takes():
    findings = list(doctor.compiler_findings(GOOD))
    assert [finding.status for finding in findings] == ["ok", "ok"], findings
    assert all("PTX 9.0" in finding.text for finding in findings)


def test_gpu_demanded_but_absent_is_one_problem(machine, monkeypatch):
    machine(NOTHING)
    monkeypatch.setenv("WARPLAB_BACKEND", "gpu")
    findings = [*doctor.compiler_findings(NOTHING), *doctor.backend_findings()]
    (line,) = texts(findings, "problem")
    assert "WARPLAB_BACKEND=gpu, but no NVIDIA driver" in line


PINNED = dict.fromkeys(doctor.ESSENTIAL, "1.0") | {"tensorflow-cpu": "2.21.0"}


def test_packages_as_pinned():
    findings = list(doctor.package_findings(PINNED, PINNED, "requirements.txt"))
    assert {finding.status for finding in findings} == {"ok"}
    assert findings[-1].text == "17 of 17 packages are as requirements.txt pins them"


def test_missing_package_is_a_problem_with_what_to_do():
    installed = {name: version for name, version in PINNED.items() if name not in ("numba-cuda", "tensorflow-cpu")}
    (line,) = texts(doctor.package_findings(installed, PINNED, "requirements.txt"), "problem")
    assert line.startswith("missing: numba-cuda, tensorflow-cpu -> Run `make setup`")


def test_other_version_is_a_note():
    lines = texts(doctor.package_findings(PINNED | {"numpy": "2.5.0"}, PINNED, "requirements.txt"), "note")
    assert lines[0].startswith("numpy 2.5.0: requirements.txt pins 1.0 ->")
    assert lines[1].startswith("16 of 17 packages")


@pytest.mark.parametrize("pair", [*doctor.RIVALS, ("tensorflow", "tensorflow-cpu")])
def test_packages_that_overwrite_each_other_are_a_problem(pair):
    findings = doctor.package_findings(PINNED | dict.fromkeys(pair, "9"), PINNED, "requirements-gpu.txt")
    (line,) = texts(findings, "problem")
    assert pair[0] in line
    assert "overwrite each other's files" in line


@pytest.mark.parametrize(("version", "words"), [((3, 10, 1), "too old"), ((3, 14, 0), "too new")])
def test_python_out_of_range_is_a_problem(version, words):
    (line,) = texts(doctor.python_findings(version, str(COURSE / ".venv")), "problem")
    assert words in line
    assert "PYTHON=python3.12" in line


def test_kernels_run_on_this_machine():
    findings = list(doctor.backend_findings())
    assert [finding.status for finding in findings] == ["ok"] * 3, findings
    assert "results are right" in findings[1].text


def test_the_graders_sandbox_is_named_and_no_learners_problem(monkeypatch):
    from warplab.grading.sandbox import isolation

    monkeypatch.setattr(isolation, "find", lambda: isolation.LimitsOnly("bubblewrap is not installed"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (line,) = texts(doctor.grading_findings(), "note")
    assert "bubblewrap is not installed" in line
    assert "which a learner does not need" in line
    assert "sudo apt install bubblewrap" in line
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/bwrap")
    (line,) = texts(doctor.grading_findings(), "note")
    assert "user namespaces" in line
    monkeypatch.setattr(isolation, "find", lambda: isolation.Bubblewrap("/usr/bin/bwrap"))
    (line,) = texts(doctor.grading_findings(), "ok")
    assert "bubblewrap works" in line


def test_wrong_result_is_a_problem():
    assert texts(doctor.kernel_ran("Numba", lambda: 7)) == ["a kernel in Numba ran, 7 results are wrong -> "]


def test_crash_in_a_section_does_not_end_the_report(monkeypatch, capsys):
    def crash():
        raise OSError("no /proc here")
        yield

    monkeypatch.setattr(doctor, "sections", lambda: [("One", crash), ("Two", lambda: iter([doctor.ok("fine")]))])
    assert doctor.main([]) == 1
    assert "cannot be examined: OSError: no /proc here" in (output := capsys.readouterr().out)
    assert "fine" in output


def test_problem_decides_the_exit_code(monkeypatch, capsys):
    for finding, code in ((doctor.note("an old driver"), 0), (doctor.problem("no numba"), 1)):
        monkeypatch.setattr(doctor, "sections", lambda finding=finding: [("One", lambda: iter([finding]))])
        assert doctor.main([]) == code
    assert "1 problem: the course cannot be used" in capsys.readouterr().out


def test_machine_with_nothing(tmp_path):
    """The clone and a Python without a single package, no .venv: the report is whole and true."""
    shutil.copytree(COURSE / "warplab", tmp_path / "warplab", ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("requirements.txt", "requirements-gpu.txt"):
        shutil.copy(COURSE / file, tmp_path)
    base = getattr(sys, "_base_executable", sys.executable)
    process = subprocess.run(
        [base, "-S", "-m", "warplab", "doctor"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "WARPLAB_BACKEND": "simulator"},
        capture_output=True,
        text=True,
    )
    assert process.stderr == ""
    assert process.returncode == 1
    assert "problem  missing: jupyterlab, nbgrader" in process.stdout
    assert "NVVM (Numba) was not tried: no package numba" in process.stdout
    assert process.stdout.endswith("1 problem: the course cannot be used like this.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["help"], 0, "usage: python -m warplab COMMAND"),
        ([], 2, "usage: python -m warplab COMMAND"),
        (["docter"], 2, "no command 'docter'"),
    ],
)
def test_command_line(arguments, code, words):
    process = subprocess.run([sys.executable, "-m", "warplab", *arguments], cwd=COURSE, capture_output=True, text=True)
    assert process.returncode == code
    assert words in process.stdout + process.stderr
