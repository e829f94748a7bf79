"""The check of a kernel: what passes, what is not a kernel, what a failure says; tests/labs has more wrong kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.kernel_checks import INDEX, PRODUCT, RIGHT, cuda_kernel, doubled, failure
from warplab import checks
from warplab.launch.kernel_source import CudaSource


def test_a_right_kernel_passes_silently_but_for_one_line(capfd):
    assert checks.kernel(RIGHT, PRODUCT) is None
    out, err = capfd.readouterr()
    assert re.fullmatch(r"f: right for 10 sizes and 2 launch shapes\.\n", out)
    assert err == ""  # nbgrader counts anything there as a failure


def test_a_failure_names_what_is_needed_to_repeat_it():
    wrong = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i] + (i == 70);")
    error = failure(wrong, PRODUCT, sizes=[100], launches=[(2, 64)])
    assert "f: c is wrong in 1 of 100 elements, the first at index 70." in str(error)
    seed = int(re.search(r"n = 100, 2 blocks of 64 threads, seed (\d+)", str(error))[1])
    assert str(failure(wrong, PRODUCT, sizes=[100], launches=[(2, 64)], seed=seed)) == str(error)
    assert str(failure(wrong, PRODUCT, sizes=[100], launches=[(2, 64)], seed=seed + 1)) != str(error)


def test_a_notebook_shows_the_message_without_the_frames_of_the_check():
    error = failure(cuda_kernel(""), PRODUCT)
    assert error._render_traceback_() == [f"CheckFailed: {error}"]
    assert isinstance(error, AssertionError)


@pytest.mark.parametrize("options", [{"sizes": []}, {"launches": []}])
def test_a_check_of_nothing_is_refused(options):
    with pytest.raises(ValueError, match="no sizes or no launches"):
        checks.kernel(RIGHT, PRODUCT, **options)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a, b, c, n: None, "<lambda> is a Python function, which runs on the host"),
        (np.multiply, "not a kernel"),
        (np.ones(3), "not a kernel"),
        (None, "not a kernel"),
        (42, "not a kernel"),
    ],
)
def test_what_is_not_a_kernel_is_refused(answer, message):
    assert message in str(failure(answer, PRODUCT))


def test_language():
    checks.kernel(RIGHT, PRODUCT, language="CUDA C++")
    error = failure(RIGHT, PRODUCT, language="Numba")
    assert (error.expected, error.got) == ("Numba", "CUDA C++")


@pytest.mark.parametrize(
    ("body", "kind", "line"),
    [
        ("", "not written", ""),
        (INDEX + "if (i < n) c[i] = a[i];", "wrong result", ""),
        (INDEX + "if (i < n) { c[i] = a[i] * b[i]; const_cast<float*>(a)[i] = 0; }", "input modified", ""),
        (INDEX + "c[i] = a[i] * b[i];", "outside", "kernel.cu, line 1"),
        (INDEX + "c[i % n] = i;", "outside|wrong result|race", None),
        (INDEX + "while (n) c[0] = i;", "endless|race", None),
        ("__trap();", "stopped", "kernel.cu, line 1"),
    ],
)
def test_kind_and_line_of_a_failure(body, kind, line):
    error = failure(cuda_kernel(body), PRODUCT, sizes=[40], launches=[(2, 32)])
    assert re.fullmatch(kind, error.kind), error
    assert line is None or error.line.startswith(line)
    assert line != "" or error.line == ""


def test_kind_of_a_limit_and_of_a_language():
    error = failure(RIGHT, PRODUCT, sizes=[40], launches=[(2, 32)], limits={"global_store_bytes": 8})
    assert error.kind == "limit"
    assert error.missed.startswith("too many global store bytes")
    assert failure(RIGHT, PRODUCT, language="Numba").kind == "wrong language"
    assert failure(abs, PRODUCT).kind == failure(lambda a: None, PRODUCT).kind == "no kernel"


TALKS = 'if (i < n) { printf("%d of %d\\n", i, n); '


def test_of_what_the_last_launch_prints_the_first_lines_are_shown(capsys):
    checks.kernel(cuda_kernel(INDEX + TALKS + "c[i] = a[i] * b[i]; }"), PRODUCT, sizes=(200, 100), launches=[(2, 128)])
    said = capsys.readouterr().out.splitlines()
    assert said == [*(f"{i} of 200" for i in range(8)), "… 192 more lines", "f: right for 2 sizes and 1 launch shape."]


def test_of_a_failed_check_the_failed_launch_prints(capsys):
    odd = cuda_kernel(INDEX + TALKS + "c[i] = n == 100 ? 0 : a[i] * b[i]; }")
    failure(odd, PRODUCT, sizes=(200, 100, 3), launches=[(2, 128)])
    assert capsys.readouterr().out.splitlines() == [*(f"{i} of 100" for i in range(8)), "… 92 more lines"]


ACTIVE = """int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] * b[i] * (__activemask() == 0xffffffffu);"""


def test_a_kernel_that_trusts_the_active_mask_hears_what_cuda_promises():
    """It is right where the lanes of a warp run together, so what its results look like would not help."""
    error = failure(cuda_kernel(ACTIVE), PRODUCT, sizes=[64], launches=[(2, 32)])
    assert error.problem.startswith("f is right only where `__activemask()` happens to name several lanes")
    assert error.look_at.endswith("Use `__ballot_sync`, `__match_any_sync` or a full mask.")
    assert error.missed == "`__activemask()` may name this lane alone"
    for wrong in (ACTIVE.replace("a[i]", "2 * a[i]"), ACTIVE.replace("__activemask()", "1u")):
        error = failure(cuda_kernel(wrong), PRODUCT, sizes=[64], launches=[(2, 32)])
        assert "active" not in str(error)


@pytest.mark.parametrize(
    ("count", "passes"), [("atomicInc(&arrived, gridDim.x - 1)", True), ("atomicAdd(&arrived, 1)", False)]
)
def test_device_variables_keep_their_values_from_launch_to_launch(count, passes):
    """As in CUDA: a kernel that leaves its counter dirty is wrong when it is launched again, and a check says so.

    Each launch of a check is held to everything, so a kernel that counts its launches gains nothing by that.
    """
    code = f"""__device__ unsigned arrived;
    extern "C" __global__ void f(const float* a, float* out, int n) {{
        __shared__ bool last;
        if (threadIdx.x == 0) last = {count} == gridDim.x - 1;
        __syncthreads();
        for (int i = threadIdx.x; last && i < n; i += blockDim.x) out[i] = 2 * a[i];
    }}"""
    options = {"sizes": [50, 60], "launches": [(2, 32)]}
    checks.kernel(CudaSource(code, "f"), doubled, sizes=[50], launches=[(2, 32)])
    if passes:
        checks.kernel(CudaSource(code + "//", "f"), doubled, **options)
    else:
        assert "none of its 60 elements was written" in str(failure(CudaSource(code + "//", "f"), doubled, **options))
