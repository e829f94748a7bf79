"""`pytest --warplab` on a file of tests that knows nothing of it, in one process and under xdist."""

from __future__ import annotations

import json
import re

import pytest

from tests.warplab.running.programs import python

TESTS = """
import numpy as np
import pytest

cp = pytest.importorskip("cupy")
cuda = pytest.importorskip("numba.cuda")


@cuda.jit
def reverse(x, wait):
    s = cuda.shared.array(64, dtype=np.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if wait:
        cuda.syncthreads()
    x[t] = s[63 - t]


def launch(wait):
    x = np.arange(64, dtype=np.float32)
    reverse[1, 64](x, wait)
    return x


def test_right():
    assert launch(1)[0] == 63


def test_race():
    launch(0)


def test_race_that_is_caught():
    with pytest.raises(Exception):
        launch(0)


def test_counters():
    import warplab

    launch(1)
    warplab.assert_counters(reverse, sectors_per_request__le=4, barriers=2)
    warplab.assert_counters("reverse", global_load_requests__ge=2, bank_conflicts=0)
    warplab.assert_counters(shared_load_requests__le=1)


def test_missing_library():
    pytest.importorskip("cupyx.scipy.nothing")
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "xdist"])
def test_a_defect_fails_its_test_at_the_kernels_line(tmp_path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_gpu.py").write_text(TESTS)
    plugin = ("-m", "pytest", "-p", "warplab.pytest_plugin", "-p", "no:cacheprovider", "test_gpu.py", "-v", "-rs")
    ran = python(tmp_path, *plugin, "--warplab", "--warplab-json=report.json", "--warplab-sarif=report.sarif", *workers)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    outcomes = {name: word for name in re.findall(r"def (test_\w+)", TESTS) for word in _outcomes(ran.stdout, name)}
    assert outcomes == {
        "test_right": "PASSED",
        "test_race": "FAILED",
        "test_race_that_is_caught": "FAILED",
        "test_counters": "FAILED",
        "test_missing_library": "SKIPPED",
    }
    line = TESTS.splitlines().index("    x[t] = s[63 - t]") + 1
    assert f"test_gpu.py:{line}: DataRace" in ran.stdout
    assert "a defect of a kernel fails it all the same" in ran.stdout
    assert "AssertionError: reverse: shared_load_requests is 2; at most 1 was asked for" in ran.stdout
    assert "cupyx" in ran.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    (kernel,) = report["kernels"]
    assert (kernel["launches"], kernel["counters"]["barriers"], bool(kernel["estimates"])) == (2, 4, True)
    assert [(d["error"], d["line"], d["times"]) for d in report["defects"]] == [("DataRace", line, 2)]
    (result,) = json.loads((tmp_path / "report.sarif").read_text())["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]
    assert region == {
        "artifactLocation": {"uri": "test_gpu.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": line},
    }


def _outcomes(output: str, name: str) -> set[str]:
    found = re.findall(rf"::{name} (PASSED|FAILED|SKIPPED)|(PASSED|FAILED|SKIPPED) test_gpu\.py::{name}\b", output)
    return {before or after for before, after in found}


PLAIN = """
import sys


def test():
    assert not {"numpy", "warplab.dropin.numba_cuda", "warplab.simulator"} & {*sys.modules}
    assert __import__.__module__ == "builtins"
"""


WRONG_CALL = """
from numba import cuda

@cuda.jit
def f(x):
    pass

def test():
    f[1, 1](1, 2)
"""


def test_a_wrong_call_is_told_by_the_tests_line_and_a_sentence(tmp_path) -> None:
    (tmp_path / "test_gpu.py").write_text(WRONG_CALL)
    ran = python(tmp_path, "-m", "pytest", "-p", "warplab.pytest_plugin", "--warplab", "test_gpu.py")
    assert ran.returncode == 1
    said = "test_gpu.py, line 9:\n    f[1, 1](1, 2)\nArgumentError: kernel f(x) takes 1 argument, 2 were given\n"
    assert said in ran.stdout
    assert "errors.py" not in ran.stdout


def test_without_the_option_the_plugin_does_nothing(tmp_path) -> None:
    (tmp_path / "test_plain.py").write_text(PLAIN)
    ran = python(tmp_path, "-m", "pytest", "-p", "warplab.pytest_plugin", "-p", "no:cacheprovider", "test_plain.py")
    assert "1 passed" in ran.stdout, ran.stdout
    assert "Warp Lab" not in ran.stdout


def test_a_bad_option_is_a_sentence(tmp_path) -> None:
    (tmp_path / "test_plain.py").write_text("def test(): pass\n")
    ran = python(
        tmp_path, "-m", "pytest", "-p", "warplab.pytest_plugin", "--warplab", "--warplab-card=Voodoo2", "test_plain.py"
    )
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no card is named 'Voodoo2'" in ran.stderr


RACY = """
import numpy as np
from numba import cuda


@cuda.jit
def bad(y):
    y[0] = y[0] + cuda.threadIdx.x


def go():
    try:
        bad[1, 64](np.zeros(1, np.int32))
    except Exception:
        pass
"""
CHILDREN = """
import multiprocessing, subprocess, sys
import racy

def test_fork():
    process = multiprocessing.get_context("fork").Process(target=racy.go)
    process.start()
    process.join()

def test_right():
    pass

def test_script():
    subprocess.run([sys.executable, "-c", "import racy; racy.go()"], check=True)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one-process", "xdist"])
@pytest.mark.parametrize(
    ("text", "failed"),
    [(CHILDREN, {"test_fork", "test_script"}), ("import racy\nracy.go()\ndef test_right(): pass\n", set())],
    ids=["children", "import"],
)
def test_a_defect_of_a_child_or_at_import_does_not_pass(tmp_path, text, failed, workers) -> None:
    (tmp_path / "racy.py").write_text(RACY)
    (tmp_path / "test_gpu.py").write_text(text)
    plugin = ("-m", "pytest", "-p", "warplab.pytest_plugin", "-p", "no:cacheprovider", "test_gpu.py", "-rA")
    ran = python(tmp_path, *plugin, "--warplab", "--warplab-junit=test_gpu.py/there.xml", *workers)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert {*re.findall(r"^FAILED test_gpu.py::(\w+)", ran.stdout, re.M)} == failed
    assert "PASSED test_gpu.py::test_right" in ran.stdout
    assert "1 defect." in ran.stdout
    assert "error: the report cannot be written to test_gpu.py/there.xml: " in ran.stdout


def test_a_project_that_makes_errors_of_warnings_runs_under_xdist(tmp_path) -> None:
    installed = tmp_path / "warplab-0.dist-info"  # as an installed wheel; pytest looks at the files of such packages
    installed.mkdir()
    (installed / "METADATA").write_text("Name: warplab\nVersion: 0\n")
    (installed / "RECORD").write_text("warplab/__init__.py,,\nwarplab/pytest_plugin.py,,\n")
    (installed / "entry_points.txt").write_text("[pytest11]\nwarplab.pytest_plugin = warplab.pytest_plugin\n")
    (tmp_path / "test_gpu.py").write_text(TESTS.partition("def test_race")[0])
    ran = python(tmp_path, "-m", "pytest", "--warplab", "-n", "1", "-W", "error", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 kernel, 1 launch, 0 defects" in ran.stdout
