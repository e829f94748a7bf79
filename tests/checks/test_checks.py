"""The checks themselves: what passes, what fails, and what a failure says. Wrong kernels are in tests/mutants."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplab import checks, simulator
from warplab.checks import cases
from warplab.checks.cases import cover, distinct, elementwise, poisoned, same_bits
from warplab.launch.kernel_source import CudaSource

PRODUCT = elementwise(np.multiply, ("a", "b"), "c", length="n")
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def cuda_kernel(body: str, parameters: str = "const float* a, const float* b, float* c, int n") -> CudaSource:
    return CudaSource(f'extern "C" __global__ void f({parameters}) {{ {body} }}', "f")


RIGHT = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i];")


def failure(*arguments, **options) -> checks.CheckFailed:
    with pytest.raises(checks.CheckFailed) as caught:
        checks.kernel(*arguments, **options)
    return caught.value


# -- inputs ------------------------------------------------------------------------------------------------


@given(st.integers(1, 3000), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]))
def test_inputs_are_distinct_and_not_whole(n, seed, dtype):
    values = distinct(np.random.default_rng(seed), n, dtype)
    assert values.dtype == dtype
    assert np.unique(values).size == n
    assert not np.any(values == np.round(values))
    assert np.all((values > 1) & (values < 9))


@given(st.integers(1, 10_000), st.sampled_from([1, 32, 96, 1024]), st.sampled_from([1, 4]))
def test_cover_is_enough_and_not_a_block_more(n, block, elements):
    blocks, threads = cover(block, elements=elements)(n)
    assert threads == block
    assert (blocks - 1) * block * elements < n <= blocks * block * elements


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8])
def test_poison(dtype):
    poison = poisoned(np.ones((3, 4), dtype))
    assert (poison.shape, poison.dtype) == ((3, 4), np.dtype(dtype))
    if np.issubdtype(dtype, np.floating):
        assert np.isnan(poison).all()
        assert not same_bits(poison, np.full((3, 4), np.nan, dtype)).any()  # a computed NaN is no poison


def test_each_run_draws_new_inputs():
    seen = []

    def make_case(rng, n):
        case = PRODUCT(rng, n)
        seen.append(float(case.arguments["a"][0]))
        return case

    for _ in range(2):
        checks.kernel(RIGHT, make_case, sizes=[1], launches=[(1, 32)])
    assert seen[0] != seen[1]


# -- kernels -----------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("expected", [np.nan, 1.0])
@pytest.mark.parametrize("tolerance", [{}, {"rtol": 1e-3, "atol": 1e9}])
def test_nan_never_passes(expected, tolerance):
    def make_case(rng, n):
        return cases.Case({"c": None}, {"c": np.full(n, expected, np.float32)})

    kernel = cuda_kernel('c[threadIdx.x] = nanf("");', "float* c")
    assert "is wrong in 8 of 8 elements" in str(failure(kernel, make_case, sizes=[8], launches=[(1, 8)], **tolerance))


def test_tolerance():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i] * 1.001f;")
    checks.kernel(kernel, PRODUCT, rtol=0.01)
    assert "is wrong" in str(failure(kernel, PRODUCT, rtol=1e-4))
    assert "is wrong" in str(failure(kernel, PRODUCT))


def test_infinity_is_close_to_nothing():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] / 0.0f;")
    assert "= inf" in str(failure(kernel, PRODUCT, rtol=0.5, atol=1e30))


def test_every_array_is_checked_not_only_the_output():
    kernel = cuda_kernel(INDEX + "if (i < n) { c[i] = a[i] * b[i]; const_cast<float*>(b)[i] = 0; }")
    error = failure(kernel, PRODUCT)
    assert error.problem == "f: the input b was modified."
    assert error.got == "b[0] = 0.0"


def test_an_array_may_be_input_and_output():
    def make_case(rng, n):
        a = distinct(rng, n)
        return cases.Case({"a": a, "n": np.int32(n)}, {"a": a + np.float32(1)})

    parameters = "float* a, int n"
    checks.kernel(cuda_kernel(INDEX + "if (i < n) a[i] += 1;", parameters), make_case)
    error = failure(cuda_kernel(INDEX + "if (i < n - 1) a[i] += 1;", parameters), make_case)
    assert "a is wrong in 1 of 1000 elements, the first at index 999" in str(error)


def test_two_outputs_of_two_dimensions():
    def make_case(rng, n):
        a = distinct(rng, n * n).reshape(n, n)
        return cases.Case({"a": a, "t": None, "s": None}, {"t": a.T.copy(), "s": a.sum(axis=1, keepdims=True)})

    body = (
        "int n = blockDim.x, i = threadIdx.x; float sum = 0;"
        "for (int j = 0; j < n; ++j) { t[j * n + i] = a[i * n + j]; sum += a[i * n + j]; } s[i] = sum;"
    )
    launch = {"sizes": [3, 8], "launches": [lambda n: (1, n)], "rtol": 1e-5}
    checks.kernel(cuda_kernel(body, "const float* a, float* t, float* s"), make_case, **launch)
    wrong = cuda_kernel(body + "if (i == 5) s[5] += 1;", "const float* a, float* t, float* s")
    assert "s is wrong in 1 of 8 elements, the first at [5, 0]" in str(failure(wrong, make_case, **launch))


def turned(rng, size):
    rows, columns = size
    a = distinct(rng, rows * columns).reshape(rows, columns)
    return cases.Case({"a": a, "t": None, "rows": np.int32(rows), "columns": np.int32(columns)}, {"t": a.T.copy()})


def turning(body: str) -> CudaSource:
    place = "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;"
    return cuda_kernel(place + body, "const float* a, float* t, int rows, int columns")


@pytest.mark.parametrize(
    ("body", "said", "look_at"),
    [
        ("if (x < columns && y < rows) t[x * rows + y] = a[y * columns + x];", "", ""),
        (
            "if (x < columns - 1 && y < rows) t[x * rows + y] = a[y * columns + x];",
            r"t: 33 of 1320 elements were never written, the first at \[39, 0\] \(40 × 33 elements\)\.",
            r"should write \[39, 0\] to \[39, 32\]: how do they find row and column",
        ),
        (
            "if (x < columns && y < rows) t[x * rows + y] = a[(rows - 1 - y) * columns + x];",
            r"t is wrong in 1280 of 1320 elements, the first at \[0, 0\]\.",
            r"the index: element \[0, 0\] holds the right value of element \[0, 32\]",
        ),
        (
            "if (x < columns) t[x * rows + y] = a[y * columns + x];",
            r"a load of a\[1320\] reaches past the end of a \(1320 elements\)\.",
            r"the index into a: the thread reads a\[1320\] for t\[33\]|the guard",
        ),
    ],
)
def test_grids_and_arrays_of_two_dimensions(body, said, look_at):
    launch = {"sizes": [(3, 5), (33, 40)], "launches": [cases.cover_tiles((32, 8))]}
    if not said:
        return checks.kernel(turning(body), turned, **launch)
    error = failure(turning(body), turned, **launch)
    assert re.search(said, str(error)), error
    assert re.search(look_at, error.look_at), error
    assert "size 33 × 40, 2 × 5 blocks of 32 × 8 threads, seed" in error.where


def test_a_right_value_of_another_element_may_be_chance():
    def few_values(rng, n):
        a = rng.integers(0, 4, n).astype(np.float32)
        return cases.Case({"a": a, "s": None}, {"s": 2 * a})

    wrong = cuda_kernel("s[threadIdx.x] = 2 * a[threadIdx.x] + 2 * (threadIdx.x == 7);", "const float* a, float* s")
    shifted = cuda_kernel("s[threadIdx.x] = 2 * a[(threadIdx.x + 1) % 64];", "const float* a, float* s")
    launch = {"sizes": [64], "launches": [(1, 64)]}
    assert failure(wrong, few_values, **launch).look_at.startswith("the expression")
    assert failure(shifted, few_values, **launch).look_at.startswith("the index")


def test_a_wrong_sum_is_not_the_last_element():
    def summed(rng, n):
        a = cases.summable(rng, n)
        return cases.Case({"a": a, "s": np.zeros(1, np.float32)}, {"s": a.sum(keepdims=True)})

    wrong = cuda_kernel("atomicAdd(s, a[0]);", "const float* a, float* s")
    error = failure(wrong, summed, sizes=[64], launches=[(1, 64)])
    assert error.look_at == "which elements come into the one result, and whether each does so once"


def test_a_sum_without_atomics_is_told_so():
    def summed(rng, n):
        a = np.arange(1, n + 1, dtype=np.float32)
        return cases.Case({"a": a, "s": np.zeros(1, np.float32)}, {"s": a.sum(keepdims=True)})

    lost = cuda_kernel("s[0] += a[blockIdx.x];", "const float* a, float* s")
    error = failure(lost, summed, sizes=[4], launches=[(4, 1)])
    assert "warps store 4 times and no atomic operation is used" in error.look_at


@given(st.integers(1, 200), st.integers(1, 200))
def test_tiles_cover_a_matrix_and_no_more(rows, columns):
    (across, down), block = cases.cover_tiles((32, 8), tile=(32, 16))((rows, columns))
    assert block == (32, 8)
    assert (across - 1) * 32 < columns <= across * 32
    assert (down - 1) * 16 < rows <= down * 16


@given(st.integers(0, 2**32), st.integers(1, 2**14))
def test_sums_of_summable_values_are_exact(seed, n):
    rng = np.random.default_rng(seed)
    values = cases.summable(rng, n)
    assert values.dtype == np.float32
    for order in (values, values[::-1], rng.permutation(values)):
        assert np.cumsum(order)[-1] == np.sum(values, dtype=np.float64)


def test_more_summable_values_than_sums_are_exact_for():
    with pytest.raises(ValueError, match="summable: 16385 elements, expected 1 to 16384"):
        cases.summable(np.random.default_rng(), 2**14 + 1)


def test_elements_written_in_front_are_found():
    error = failure(cuda_kernel("c[(int)threadIdx.x - 3] = 1;"), PRODUCT, sizes=[32], launches=[(1, 32)])
    assert error.problem == "f: a store of c[-3] reaches before the start of c (32 elements)."
    assert error.got.endswith("Allowed to go on, the kernel wrote 3 elements in front of the array (c).")
    assert error.look_at == "the index: it becomes negative"


def test_a_read_outside_is_reported_with_the_array():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i + 1];")
    error = failure(kernel, PRODUCT)
    assert error.problem == "f: a load of b[1000] reaches past the end of b (1000 elements)."
    assert "a load of 4 bytes" in error.got
    assert "guard" not in error.got
    assert error.look_at == "the index into b: the thread reads b[1000] for c[999]"


FAULTY = "for (int i = threadIdx.x; i <= n; i += blockDim.x) c[i] = a[i] * b[{index}];"


@pytest.mark.parametrize("block", [1, 32])
def test_an_illegal_load_and_a_store_outside_are_told_apart(block):
    """Both are there; where another element's store is outside, the message is about the load alone."""
    launch = {"sizes": [100], "launches": [(1, block)]}
    error = failure(cuda_kernel(FAULTY.format(index="n - i")), PRODUCT, **launch)
    assert error.problem == "f: a load of b[100] reaches past the end of b (100 elements)."
    assert error.look_at == "the index into b: the thread reads b[100] for c[0]"
    assert "wrote" not in str(error)
    error = failure(cuda_kernel(FAULTY.format(index="n - 1 - i")), PRODUCT, **launch)
    assert error.problem == "f: a load of b[-1] reaches before the start of b (100 elements)."
    assert "wrote one element past the end, index 100 of an array of 100 (c)" in error.got
    assert error.look_at == "the comparison with the size: is n itself an index?"


def test_writes_past_the_end_are_found_where_bands_are_added_up():
    """a * b + c of three guard bands with one pattern is that pattern again: nothing would seem to be written."""
    product_sum = elementwise(lambda a, b, c: a * b + c, ("a", "b", "c"), "d", length="n")
    parameters = "const float* a, const float* b, const float* c, float* d, int n"
    error = failure(cuda_kernel(INDEX + "d[i] = a[i] * b[i] + c[i];", parameters), product_sum)
    assert "wrote 24 elements past the end: 1024 threads, 1000 elements (d)" in error.got
    assert error.look_at == "the guard: what must a thread do that has no element?"


@pytest.mark.parametrize("index", ["i + 100000000", "i + 20000", "i - 100000000"])
def test_an_access_far_outside_says_where_to_look(index):
    error = failure(cuda_kernel(INDEX + f"if (i < n) c[{index}] = a[i] * b[i];"), PRODUCT)
    assert error.got.startswith("illegal address: a store of 4 bytes")
    assert "index" in error.look_at


def test_a_race_fails_also_where_the_result_comes_out_right():
    """In the simulator's order the neighbour is read before it is written."""

    def make_case(rng, n):
        a = distinct(rng, n)
        return cases.Case({"a": a}, {"a": np.append(a[1:], a[-1:])})

    def shift(between):
        body = f"int i = threadIdx.x, j = min(i + 1, blockDim.x - 1); float x = a[j]; {between} a[i] = x;"
        return cuda_kernel(body, "float* a")

    launch = {"sizes": [32], "launches": [(1, 32)]}
    checks.kernel(shift("__syncthreads();"), make_case, **launch)
    error = failure(shift(""), make_case, **launch)
    assert error.problem == "f: has a data race."
    assert "thread" in error.got


def test_wrong_width_is_explained():
    kernel = cuda_kernel(INDEX + "if (i < n) ((double*)c)[i] = a[i] * b[i];")
    assert "c has elements of 4 bytes, the kernel accesses 8 bytes at a time" in failure(kernel, PRODUCT).look_at


def test_limits_name_counter_and_line():
    strided = CudaSource(
        'extern "C" __global__ void f(const float* a, const float* b, float* c, int n)\n{\n'
        "    for (int i = threadIdx.x * 8; i < threadIdx.x * 8 + 8; ++i)\n        c[i] = a[i] * b[i];\n}\n",
        "f",
    )
    launch = {"sizes": [256], "launches": [(1, 32)]}
    checks.kernel(strided, PRODUCT, limits={"sectors_per_load_request": 32}, **launch)
    error = failure(strided, PRODUCT, limits={"sectors_per_load_request": 4}, **launch)
    assert (error.expected, error.got) == ("at most 4", "32")
    error = failure(strided, PRODUCT, limits={"global_store_requests": lambda n: n / 32 - 1}, **launch)
    assert (error.expected, error.got) == ("at most 7", "8")
    assert error.look_at == "line 4: c[i] = a[i] * b[i];\nNo other line adds to the count."


def test_repeated_writes_are_counted():
    error = failure(
        cuda_kernel("for (int i = 0; i < n; ++i) c[i] = a[i] * b[i];"),
        PRODUCT,
        sizes=[4096],
        launches=[(64, 1)],
        limits={"global_store_bytes": lambda n: 4 * n},
    )
    assert (error.expected, error.got) == ("at most 16,384", "1,048,576")
    assert "64 times the bytes allowed: do several threads write the same element?" in error.look_at


def test_limit_of_something_never_counted_fails():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = 1;")
    ones = elementwise(lambda a, b: np.ones_like(a), ("a", "b"), "c", length="n")
    assert failure(kernel, ones, limits={"sectors_per_load_request": 4}).got == "none were counted"


def test_least_names_counter_and_the_line_with_most_idle_lanes():
    few = CudaSource(
        'extern "C" __global__ void f(const float* a, const float* b, float* c, int n)\n{\n'
        "    if (threadIdx.x < 8)\n        for (int i = threadIdx.x; i < n; i += 8)\n"
        "            c[i] = a[i] * b[i];\n}\n",
        "f",
    )
    launch = {"sizes": [256], "launches": [(1, 32)]}
    checks.kernel(few, PRODUCT, least={"warp_efficiency": 0.25}, **launch)
    error = failure(few, PRODUCT, least={"warp_efficiency": lambda n: n / 256}, **launch)
    assert (error.expected, error.kind, error.counter) == ("at least 1", "limit", "warp_efficiency")
    assert 0.25 < float(error.got) < 0.3
    assert error.look_at == ("line 5: c[i] = a[i] * b[i];\nOf the 32 lanes of a warp 8 are active here, on average.")
    checks.kernel(RIGHT, PRODUCT, sizes=[256], least={"warp_efficiency": 1})


def test_misspelt_limit_is_an_error_of_the_test():
    with pytest.raises(AttributeError, match="sectors_per_request"):
        checks.kernel(RIGHT, PRODUCT, limits={"sectors_per_request": 4})


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


def test_wrong_parameters_and_compile_errors():
    assert "cannot be launched with (a, b, c, n)" in str(failure(cuda_kernel("", "float* a"), PRODUCT))
    error = failure(cuda_kernel("c[0] = d;"), PRODUCT)
    assert "does not compile" in str(error)
    assert error.kind == "compile"
    error = failure(cuda_kernel(INDEX + "c[i] = 1;", "const double* a, const double* b, double* c, int n"), PRODUCT)
    assert error.got.endswith("points to float64, but the array holds float32")
    assert error.look_at == "the declared type of that parameter: it must be float*"


def test_a_failure_of_the_simulator_is_not_the_kernels(monkeypatch):
    def fail(*arguments, **options):
        raise IndexError("lane 7")

    monkeypatch.setattr(simulator.Device, "launch", fail)
    told = (
        r"^the course's simulator failed on f: IndexError: lane 7 \(test_checks.py, line \d+\)\n.*mistake in Warp Lab"
    )
    with pytest.raises(simulator.SimulatorFailure, match=told) as caught:
        checks.kernel(RIGHT, PRODUCT)
    assert not isinstance(caught.value, simulator.SimulatorError)
    monkeypatch.setattr(simulator.Device, "launch", lambda *a, **o: bytearray(1 << 62))
    with pytest.raises(MemoryError):
        checks.kernel(RIGHT, PRODUCT)


# -- functions ---------------------------------------------------------------------------------------------


def function_failure(function, expected=lambda x: 3.0 * x) -> checks.CheckFailed:
    with pytest.raises(checks.CheckFailed) as caught:
        checks.function(function, expected, lambda rng: {"x": float(rng.uniform(1, 2))})
    return caught.value


def test_a_whole_number_is_shown_as_the_expected_one_is():
    with pytest.raises(checks.CheckFailed, match=r"expected  24\n  got       12\n"):
        checks.examples(lambda x: 12.0 * x, [({"x": 1}, 24), ({"x": 2}, 24)])


def test_a_right_function_passes(capfd):
    assert checks.function(lambda x: 3 * x, lambda x: x + x + x, lambda rng: {"x": float(rng.random())}) is None
    out, err = capfd.readouterr()
    assert out == "<lambda>: right for 100 inputs.\n"
    assert err == ""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "not written yet"),
        (lambda x: print(end=""), "<lambda> returns nothing.(.|\n)*print shows a value, return hands it back"),
        (lambda x: str(3 * x), "wrong type"),
        (lambda x: np.array([3 * x]), "wrong type"),
        (lambda x: True, "wrong type"),
        (lambda x: float("nan"), "not finite"),
        (lambda x: float("inf"), "not finite"),
        (lambda x: 1 / 0, "raises ZeroDivisionError"),
        (lambda y: 3 * y, "raises TypeError"),
        (lambda x: 4.5, "the same value whatever it is given"),
        (lambda x: 3000 * x, "a power of 1000"),
        (lambda x: 24 * x, "bits or bytes"),
        (lambda x: 3 * x * 1e9 / 2**30, "1000 here, not 1024"),
        (lambda x: 2 * x, "every result is 0.666667 times"),
        (lambda x: 3 * x + 0.1, "the error differs from input to input$"),
        (lambda x: 3 * x + 0.1 * (x > 1.5), r"from input to input; \d+ of 100 answers are right"),
    ],
)
def test_a_wrong_function_is_rejected_for_its_reason(function, message):
    assert re.search(message, str(function_failure(function)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x <= 1.5, "every answer is the opposite"),
        (lambda x: False, "the same value whatever it is given"),
        (lambda x: x > 1.9, "answers are wrong"),
        (lambda x: 1, "wrong type"),
        (lambda x: "True", "wrong type"),
    ],
)
def test_yes_or_no(function, message):
    assert message in str(function_failure(function, lambda x: x > 1.5))


def test_one_wrong_answer_of_several():
    with pytest.raises(checks.CheckFailed, match="1 of 3 answers is wrong"):
        checks.examples(lambda x: x > 3, [({"x": 1}, False), ({"x": 2}, True), ({"x": 4}, True)])


def test_the_unit_is_a_cause_of_a_comparison_that_never_changes():
    with pytest.raises(checks.CheckFailed, match="are they in the same unit"):
        checks.examples(lambda x: x <= 2, [({"x": 1e9}, True), ({"x": 3e9}, False)])


def test_numpy_scalars_are_numbers():
    checks.examples(lambda x: np.float32(x), [({"x": 0.5}, 0.5)])
    checks.examples(lambda x: np.bool_(x > 0), [({"x": 0.5}, True)])
    checks.examples(lambda x: x, [({"x": 3}, 3)])


def test_function_failure_can_be_repeated():
    error = function_failure(lambda x: 2 * x)
    call = re.search(r"<lambda>\(x=([\d.]+)\), seed \d+", error.where)
    assert float(error.expected) == 3 * float(call[1])
    assert float(error.got) == 2 * float(call[1])


def test_no_function_and_no_inputs():
    with pytest.raises(checks.CheckFailed, match="A function is expected"):
        checks.examples(3.0, [({}, 3.0)])
    with pytest.raises(ValueError, match="no inputs"):
        checks.examples(abs, [])


# -- arrays ------------------------------------------------------------------------------------------------


WANTED = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)


def test_array_that_is_right(capsys):
    checks.array(WANTED.copy(), WANTED, name="c")
    checks.array(np.full((), 2.5), np.full((), 2.5))
    checks.array(np.zeros((0, 3)), np.zeros((0, 3)))
    checks.array(WANTED * np.float32(1 + 1e-6), WANTED, rtol=1e-5)
    checks.array(np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf]))
    assert "c: right, an array of float32, shape (3, 4).\n" in capsys.readouterr().out


def test_array_on_the_device():
    from warplab import cp, cuda

    checks.array(cuda.to_device(WANTED), WANTED)
    checks.array(cp.asarray(WANTED), WANTED)


class EqualsEverything(np.ndarray):
    def __array_ufunc__(self, *_, **__):
        return np.bool_(True)


@pytest.mark.parametrize(
    ("got", "kind", "message"),
    [
        (WANTED.tolist(), "wrong type", "c is no array"),
        (WANTED.view(EqualsEverything), "wrong type", "c is no array"),
        (WANTED[0], "wrong type", "c has the wrong shape"),  # would broadcast
        (WANTED.reshape(1, 3, 4), "wrong type", "c has the wrong shape"),
        (WANTED.astype(np.float64), "wrong type", "c has the wrong dtype"),
        (np.full_like(WANTED, np.nan), "not finite", "c is not finite"),
        (np.full_like(WANTED, np.inf), "not finite", "c is not finite"),
        (WANTED + np.float32(0.5), "wrong result", "c is wrong in 12 of 12 elements, the first at [0, 0]"),
    ],
)
def test_array_that_is_wrong(got, kind, message):
    with pytest.raises(checks.CheckFailed, match=re.escape(message)) as caught:
        checks.array(got, WANTED, rtol=0.1, atol=0.01, name="c")
    assert caught.value.kind == kind


@pytest.mark.parametrize("expected", [np.nan, np.inf])
def test_not_even_nan_is_nan_and_infinity_is_no_number(expected):
    for got in {np.nan, 1.0, -np.inf}:
        with pytest.raises(checks.CheckFailed):
            checks.array(np.array([got]), np.array([expected]), rtol=1.0, atol=1e300)


# -- what a failure says without its message ---------------------------------------------------------------


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
    assert (error.kind, error.counter) == ("limit", "global_store_bytes")
    assert failure(RIGHT, PRODUCT, language="Numba").kind == "wrong language"
    assert failure(abs, PRODUCT).kind == failure(lambda a: None, PRODUCT).kind == "no kernel"


# -- the surroundings of a check ---------------------------------------------------------------------------


def test_seeds_and_device_of_a_session():
    from warplab.checks import session
    from warplab.simulator import Device

    device, drawn = Device(), iter([7, 8])
    with session.using(session.Session(lambda: next(drawn), device)):
        wrong = cuda_kernel(INDEX + "if (i < n) c[i] = 1;")
        assert failure(wrong, PRODUCT).where.endswith("seed 7")
        assert failure(wrong, PRODUCT).where.endswith("seed 8")
    assert device.launches > 0
    before = device.launches
    checks.kernel(RIGHT, PRODUCT, sizes=[4])
    assert device.launches == before


# -- predictions -------------------------------------------------------------------------------------------


def test_predictions(capsys):
    checks.predictions({"a": 4, "b": 5.0, "c": None}, {"a": 4, "b": 5})
    assert capsys.readouterr().out == "prediction: right for 'a', 'b'.\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": 4, "b": None}, "prediction has no number yet for 'b'."),
        ({}, "prediction has no number yet for 'a', 'b'."),
        ({"a": 4, "b": "5"}, "prediction has no finite number for 'b'."),
        ({"a": 4, "b": float("nan")}, "prediction has no finite number for 'b'."),
        ({"a": True, "b": 7}, "prediction has no finite number for 'a'."),
        ({"a": 4, "b": 6}, "prediction is wrong for 1 of 2: 'b'."),
        ([4, 7], "prediction is no dict."),
    ],
)
def test_wrong_predictions_are_named_and_the_right_number_is_not(given, said):
    with pytest.raises(checks.CheckFailed) as caught:
        checks.predictions(given, {"a": 4, "b": 7})
    assert str(caught.value).startswith(said)
    assert "7" not in str(caught.value).replace("[4, 7]", "").replace("'b': 7", "")
