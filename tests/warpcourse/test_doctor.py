"""What the doctor reports, also about machines that the tests pretend to run on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.machines import GOOD, H100, NOTHING, OLD, VOLTA, pretending
from warpcourse import commands, doctor
from warpcourse.bench.lab import labs
from warpcourse.paths import COURSE
from warplab import __main__
from warplab.hardware import driver


def texts(findings, status=None):
    return [f"{finding.text} -> {finding.advice}" for finding in findings if status in (None, finding.status)]


def ptx(version: str) -> str:
    return f"// Cuda compilation tools, release 13.0, V13.0.88\n.version {version}\n.target sm_90\n"


@pytest.fixture
def machine(monkeypatch):
    yield from pretending(monkeypatch)


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
    assert findings[-1].text == "14 of 14 packages are as requirements.txt pins them"


def test_missing_package_is_a_problem_with_what_to_do():
    installed = {name: version for name, version in PINNED.items() if name not in ("numba-cuda", "tensorflow-cpu")}
    (line,) = texts(doctor.package_findings(installed, PINNED, "requirements.txt"), "problem")
    assert line.startswith("missing: numba-cuda, tensorflow-cpu -> Run `make setup`")


def test_a_python_without_tensorflow_is_a_note_that_names_the_labs():
    pinned = {name: version for name, version in PINNED.items() if name != "tensorflow-cpu"}
    (line,) = texts(doctor.package_findings(pinned, pinned, "requirements.txt"), "note")
    without = ", ".join(f"{lab.number:02}" for lab in labs() if lab.tensorflow)
    assert f"labs {without} are left out -> For them: PYTHON=python3.13 make setup" in line


def test_pins_of_other_machines_are_not_asked_for():
    pinned = doctor.pinned_packages("requirements.txt")
    assert "tensorflow" not in pinned or "tensorflow-cpu" not in pinned
    assert "colorama" not in pinned
    assert doctor.holds("python_full_version >= '3.11'")
    assert not doctor.holds("sys_platform == 'win32'")


def test_other_version_is_a_note():
    lines = texts(doctor.package_findings(PINNED | {"numpy": "2.5.0"}, PINNED, "requirements.txt"), "note")
    assert lines[0].startswith("numpy 2.5.0: requirements.txt pins 1.0 ->")
    assert lines[1].startswith("13 of 14 packages")


@pytest.mark.parametrize("pair", [*doctor.RIVALS, ("tensorflow", "tensorflow-cpu")])
def test_packages_that_overwrite_each_other_are_a_problem(pair):
    findings = doctor.package_findings(PINNED | dict.fromkeys(pair, "9"), PINNED, "requirements-gpu.txt")
    (line,) = texts(findings, "problem")
    assert pair[0] in line
    assert "overwrite each other's files" in line


@pytest.mark.parametrize(("version", "words"), [((3, 10, 1), "too old"), ((3, 15, 0), "too new")])
def test_python_out_of_range_is_a_problem(version, words):
    (line,) = texts(doctor.python_findings(version, str(COURSE / ".venv")), "problem")
    assert words in line
    assert "PYTHON=python3.12" in line


def test_kernels_run_on_this_machine():
    findings = list(doctor.backend_findings())
    assert [finding.status for finding in findings] == ["ok"] * 3, findings
    assert "results are right" in findings[1].text


def test_the_graders_sandbox_is_named_and_no_learners_problem(monkeypatch):
    from warpcourse.grading.sandbox import isolation

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
    assert texts(doctor.kernel_ran("Numba", lambda: 7)) == ["a kernel in Numba ran and 7 results are wrong -> "]


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
    """With a clone, a Python without a single package and no .venv the report is complete and true."""
    for name in ("warplab", "warpcourse"):
        shutil.copytree(COURSE / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("requirements-small.txt", "requirements.txt", "requirements-gpu.txt"):
        shutil.copy(COURSE / file, tmp_path)
    (tmp_path / "notebooks").mkdir()  # without any, `doctor` would only say that they are missing
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


def test_an_application_of_the_course_is_a_command(tmp_path, monkeypatch, capsys):
    """A package with a lab's record and an app.py; a folder with one of the two is none."""
    name = f"made_{tmp_path.name}"
    for folder, files in ((name, ("lab.py", "app.py")), ("other", ("app.py",)), ("third", ("lab.py",))):
        (tmp_path / folder).mkdir()
        for file in files:
            (tmp_path / folder / file).write_text("def main(arguments):\n    print(arguments)\n    return 7\n")
    monkeypatch.setattr(commands, "COURSE", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    assert __main__.main([name, "--port", "0"]) == 7
    assert capsys.readouterr().out == "['--port', '0']\n"
    assert __main__.main(["help"]) == 0
    shown = capsys.readouterr().out
    assert name in shown
    assert "other" not in shown
    assert __main__.main(["third"]) == 2
