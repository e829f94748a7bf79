"""Mistakes of a first Numba kernel: each is told what was meant and what to write, in a notebook and by the checks."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from numba import float32
from numba.core.errors import TypingError

from tests.support.kernel_checks import failure
from warplab import cuda, simulate
from warplab.checks.cases import Case, elementwise
from warplab.compile.short_traceback import short_traceback

SUM = elementwise(np.add, ("x", "y"), "out")


@cuda.jit
def slices(x, y, out):
    out[:] = x + y


@cuda.jit
def whole_arrays(x, y, out):
    i = cuda.grid(1)
    z = x + y
    out[i] = z[i]


@cuda.jit
def returns(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        return x[i] + y[i]


@cuda.jit
def numpy_function(x, y, out):
    np.add(x, y, out)


@cuda.jit
def numpy_on_elements(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = np.add(x[i], y[i])


@cuda.jit
def called_index(x, y, out):
    i = cuda.threadIdx.x()
    out[i] = x[i] + y[i]


@cuda.jit
def older_name(x, y, out):
    out[0] = cuda.ballot(x[0] > 0)


@cuda.jit
def makes_a_list(x, y, out):
    i = cuda.grid(1)
    parts = [x[i], y[i]]
    out[i] = parts[0] + parts[1]


@cuda.jit
def grows_a_list(x, y, out):
    parts = []
    parts.append(x[0])
    out[0] = parts[0]


@cuda.jit
def makes_an_array(x, y, out):
    z = np.zeros(4)
    out[0] = z[0]


@cuda.jit
def unknown_name(x, y, out):
    out[0] = undefined_name  # noqa: F821


@cuda.jit
def unknown_function(x, y, out):
    out[0] = math.no_such_function(x[0])


@cuda.jit
def divides(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i / 4]


@cuda.jit
def divides_before(x, y, out):
    i = cuda.grid(1) / 4
    out[i] = x[i]


@cuda.jit
def divides_in_a_pair(x, y, out):
    i = cuda.grid(1)
    row, column = i / 4, i % 4
    out[row] = x[column]


@cuda.jit
def divides_a_row(x, y, out):
    i = cuda.grid(1)
    row = i / 4
    out[i] = x[row, i]


@cuda.jit
def ravels(x, y, out):
    i = cuda.grid(1)
    out.ravel()[i] = x[i]


@cuda.jit
def type_of_python(x, y, out):
    own = cuda.shared.array(64, dtype=float)
    out[0] = own[0]


@cuda.jit
def no_dimensions(x, y, out):
    i = cuda.grid()
    out[i] = x[i]


@cuda.jit
def not_called(x, y, out):
    i = cuda.grid
    out[i] = x[i]


@cuda.jit
def two_numbers(x, y, out):
    i = cuda.grid(2)
    if i < out.size:
        out[i] = x[i]


@cuda.jit
def three_numbers(x, y, out):
    i = cuda.threadIdx
    if i < out.size:
        out[i] = x[i]


@cuda.jit
def round_brackets(x, y, out):
    i = cuda.grid(1)
    out[i] = x(i)


@cuda.jit
def called_size(x, y, out):
    i = cuda.grid(1)
    if i < out.size():
        out[i] = x[i]


@cuda.jit
def compares_a_shape(x, y, out):
    i = cuda.grid(1)
    if i < out.shape:
        out[i] = x[i]


@cuda.jit
def forgot_an_index(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y


@cuda.jit
def largest_of_an_array(x, y, out):
    i = cuda.grid(1)
    out[i] = max(x, 0)


@cuda.jit
def compares_an_array(x, y, out):
    i = cuda.grid(1)
    if x > 0:
        out[i] = x[i]


@cuda.jit
def takes_a_row(pixels, out):
    i = cuda.grid(1)
    out[i] = pixels[3 * i]


@cuda.jit
def adds_arrays(x, y, out):
    out += x


@cuda.jit
def appends(x, y, out):
    out.append(x[0])


@cuda.jit
def loops_over_values(x, y, out):
    for i in out:
        out[i] = x[i]


@cuda.jit
def formats(x, y, out):
    print(f"{x[0]}")
    out[0] = x[0]


@cuda.jit
def rebinds(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out = x[i] + y[i]


@cuda.jit
def tries(x, y, out):
    try:
        out[0] = x[0] + y[0]
    except IndexError:
        out[0] = 0


@cuda.jit
def opens(x, y, out):
    with x:
        out[0] = 1


@cuda.jit
def yields(x, y, out):
    yield x[0]


@cuda.jit
def collects(x, y, out):
    out[0] = len({x[0], y[0]})


@cuda.jit
def draws_a_number(x, y, out):
    out[0] = np.random.rand()  # noqa: NPY002


@cuda.jit(device=True)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@cuda.jit
def calls_itself(x, y, out):
    out[0] = factorial(5)


@cuda.jit
def chooses(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = np.where(x[i] > 0, x[i], 0)


@cuda.jit
def clips(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i].clip(0)


@cuda.jit
def goes_backwards(x, y, out):
    for k in reversed(range(3)):
        out[k] = x[k]


def helper(value):
    return 2 * value


@cuda.jit
def calls_a_helper(x, y, out):
    i = cuda.grid(1)
    out[i] = helper(x[i])


@cuda.jit
def loops_over_a_number(x, y, out):
    for i in cuda.grid(1):
        out[i] = x[i]


@cuda.jit
def waits_for_the_device(x, y, out):
    out[cuda.grid(1)] = 1
    cuda.synchronize()


@cuda.jit
def untyped_array(x, y, out):
    own = cuda.shared.array(64)
    out[0] = own[0]


SIDE = 16


@cuda.jit
def sized_by_a_sum(x, y, out):
    own = cuda.shared.array((SIDE, SIDE + 2), np.float32)
    out[0] = own[0, 0]


@cuda.jit
def stores_a_word(x):
    x[0] = "word"


@cuda.jit
def sized_at_the_launch(x, y, out):
    own = cuda.shared.array(cuda.blockDim.x, np.float32)
    out[0] = own[0]


@cuda.jit
def prints_as_cpp(x, y, out):
    printf("%f", x[0])  # noqa: F821


@cuda.jit
def squares(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] ^ 2


@cuda.jit
def barrier_of_cpp(x, y, out):
    out[0] = 1
    __syncthreads()  # noqa: F821


@cuda.jit
def index_of_cpp(x, y, out):
    out[threadIdx.x] = 1  # noqa: F821


@cuda.jit
def imports(x, y, out):
    import math

    i = cuda.grid(1)
    out[i] = math.sqrt(x[i] / 4)


@cuda.jit
def halves(x, y, out):
    half = 32
    while half > 0:
        out[half] = x[half]
        half /= 2


@cuda.jit
def two_indices(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i, i] + y[i]


@cuda.jit
def numpy_max(x, y, out):
    i = cuda.grid(1)
    out[i] = np.max(x[i], 0)


@cuda.jit
def halved_offset(x, y, out):
    t = cuda.threadIdx.x
    half = 32
    while half > 0:
        if t < half:
            out[t] += x[t + half]
        half = half / 2


@cuda.jit
def halved_value(x, y, out):
    i = cuda.grid(1)
    value = x[i]
    value = value / 2
    out[i] = max(y, value)


@cuda.jit
def guard_first(x, y, out):
    if i < out.size:  # noqa: F821
        i = cuda.grid(1)
        out[i] = x[i] + y[i]


@cuda.jit
def asks_for_rows(x, y, out):
    i = cuda.grid(1)
    if i < out.rows:
        out[i] = x[i]


@cuda.jit
def largest_by_math(x, y, out):
    i = cuda.grid(1)
    out[i] = math.max(x[i], 0)


MISTAKES = [
    (asks_for_rows, "if i < out.rows:\n", "out has .size and .shape, no rows."),
    (largest_by_math, "out[i] = math.max(x[i], 0)\n", "math has no max: write max(...)."),
    (halves, "half /= 2", "half starts as a whole number, and / makes a float: write half //= 2."),
    (halved_offset, "half = half / 2", "half starts as a whole number, and / makes a float: write half = half // 2."),
    (two_indices, "out[i] = x[i, i] + y[i]", "x has 1 dimension, and here 2 indices."),
    (numpy_max, "out[i] = np.max(x[i], 0)", "np.max takes a whole array: for two numbers write max(x[i], 0)."),
    (guard_first, "if i < out.size:", "i is read before it has a value: set it above this line."),
    (chooses, "out[i] = np.where(x[i] > 0, x[i], 0)\n", "write x[i] if x[i] > 0 else 0."),
    (clips, "out[i] = x[i].clip(0)\n", "x[i] is one number, without .clip"),
    (goes_backwards, "for k in reversed(range(3)):\n", "A kernel has no reversed"),
    (calls_a_helper, "out[i] = helper(x[i])\n", "@cuda.jit(device=True) above it"),
    (loops_over_a_number, "for i in cuda.grid(1):\n", "cuda.grid(1) is one number"),
    (waits_for_the_device, "cuda.synchronize()\n", "wait at cuda.syncthreads()"),
    (untyped_array, "own = cuda.shared.array(64)\n", "cuda.shared.array(size, numba.float32)"),
    (sized_at_the_launch, "own = cuda.shared.array(cuda.blockDim.x, np.float32)\n", "known to the compiler"),
    (sized_by_a_sum, "own = cuda.shared.array((SIDE, SIDE + 2), np.float32)\n", "known to the compiler"),
    (barrier_of_cpp, "__syncthreads()  # noqa: F821\n", "in Numba it is cuda.syncthreads"),
    (index_of_cpp, "out[threadIdx.x] = 1  # noqa: F821\n", "in Numba it is cuda.threadIdx"),
    (prints_as_cpp, 'printf("%f", x[0])  # noqa: F821\n', "in Numba it is print, of values"),
    (squares, "out[i] = x[i] ^ 2\n", "^ is no power: write x[i] ** 2."),
    (imports, "import math\n", "A kernel imports nothing"),
    (slices, "out[:] = x + y\n", "it works on elements: out[i] = x[i] + y[i], for its number i"),
    (whole_arrays, "z = x + y\n", "write x[i] + y[i]"),
    (returns, "return x[i] + y[i]\n", "out[i] = x[i] + y[i]"),
    (numpy_function, "np.add(x, y, out)\n", "write the operator, on elements: x[i] + y[i]"),
    (numpy_on_elements, "out[i] = np.add(x[i], y[i])\n", "write the operator, on elements: x[i] + y[i]"),
    (called_index, "i = cuda.threadIdx.x()\n", "cuda.threadIdx.x is a number, no function: write it without ()."),
    (older_name, "out[0] = cuda.ballot(x[0] > 0)\n", "numba.cuda has no ballot. Is cuda.ballot_sync meant?"),
    (makes_a_list, "parts = [x[i], y[i]]\n", "cuda.local.array"),
    (grows_a_list, "parts = []\n", "cuda.local.array"),
    (makes_an_array, "z = np.zeros(4)\n", "cuda.shared.array"),
    (unknown_name, "out[0] = undefined_name  # noqa: F821\n", "undefined_name has no value here"),
    (divides, "out[i] = x[i / 4]\n", "write i // 4"),
    (divides_before, "out[i] = x[i]\n", "write cuda.grid(1) // 4"),
    (divides_a_row, "out[i] = x[row, i]\n", "write i // 4"),
    (divides_in_a_pair, "out[row] = x[column]\n", "write i // 4"),
    (ravels, "out.ravel()[i] = x[i]\n", ".ravel() makes an array"),
    (type_of_python, "own = cuda.shared.array(64, dtype=float)\n", "Python's types: cuda.shared.array(size"),
    (no_dimensions, "i = cuda.grid()\n", "cuda.grid(1) returns the number of the thread"),
    (not_called, "i = cuda.grid\n", "Call it: cuda.grid(1)"),
    (two_numbers, "i = cuda.grid(2)\n", "i, j = cuda.grid(2)"),
    (three_numbers, "i = cuda.threadIdx\n", "write cuda.threadIdx.x"),
    (round_brackets, "out[i] = x(i)\n", "square brackets: x[i]"),
    (called_size, "if i < out.size():\n", "write out.size, without ()"),
    (compares_a_shape, "if i < out.shape:\n", "write out.size or out.shape[0]"),
    (forgot_an_index, "out[i] = x[i] + y\n", "write y[i]"),
    (largest_of_an_array, "out[i] = max(x, 0)\n", "write x[i]"),
    (compares_an_array, "if x > 0:\n", "write x[i]"),
    (adds_arrays, "out += x\n", "write out[i] +="),
    (appends, "out.append(x[0])\n", "fixed size"),
    (loops_over_values, "for i in out:\n", "if i < out.size"),
    (formats, 'print(f"{x[0]}")\n', "print(x[0])"),
    (tries, "try:\n", "A kernel has no try and no except"),
    (opens, "with x:\n", "A kernel has no with"),
    (yields, "yield x[0]\n", "store each value in an array"),
    (collects, "out[0] = len({x[0], y[0]})\n", "A kernel has no Python sets"),
    (draws_a_number, "out[0] = np.random.rand()  # noqa: NPY002\n", "xoroshiro128p_uniform_float32(states, i)"),
    (calls_itself, "def calls_itself(x, y, out):\n", "a device function that calls itself"),
]


@pytest.mark.parametrize(("kernel", "code", "advice"), MISTAKES, ids=lambda value: getattr(value, "__name__", None))
def test_a_check_says_what_was_meant(kernel, code, advice):
    error = failure(kernel, SUM)
    assert error.kind == "compile"
    assert f": {code}" in error.look_at
    assert advice in error.look_at
    assert len(str(error).splitlines()) < 7, "Numba's own message is still there"


def test_an_error_that_names_no_line_is_told_with_it():
    with pytest.raises(Exception, match="No implementation of function") as caught:
        simulate(stores_a_word, 1, 1, (np.zeros(1, np.float32),))
    assert re.fullmatch(r'line \d+: x\[0\] = "word"', *caught.value.__notes__)


@cuda.jit
def exchanges(x):
    cuda.atomic.exch(x, 0, x[1])


@cuda.jit
def adds(x):
    cuda.atomic.add(x, 0, x[1])


@cuda.jit
def increments(x):
    cuda.atomic.inc(x, 0, x[1])


@pytest.mark.parametrize(
    ("kernel", "dtype", "advice"),
    [
        (
            exchanges,
            np.float32,
            "cuda.atomic.exch takes arrays of int32, uint32, int64, uint64, and x is one of float32",
        ),
        (adds, np.int16, "takes arrays of int32, uint32, int64, uint64, float32, float64, and x is one of int16."),
        (increments, np.int64, "takes arrays of uint32, uint64, and x is one of int64."),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_atomics_of_types_that_there_are_not(kernel, dtype, advice):
    with pytest.raises(TypingError) as caught:
        kernel[1, 1](np.zeros(2, dtype))
    notes = " ".join(caught.value.__notes__)
    assert "a whole array" not in notes
    assert advice in notes


@cuda.jit
def sums_a_row(x, y, d):
    j, i = cuda.grid(2)
    if i < d.shape[0] and j < d.shape[1]:
        d[i, j] = ((x[i] - y[j]) ** 2).sum()


@cuda.jit
def matrix_product(x, y, d):
    j, i = cuda.grid(2)
    d[i, j] = x[i] @ y[j]


@cuda.jit
def broadcasts(x, y, d):
    j, i = cuda.grid(2)
    if i < d.shape[0] and j < d.shape[1]:
        d[i, j] = x[i, None, 0] - y[j, 0]


@cuda.jit
def multiplies_rows(x, y, d):
    j, i = cuda.grid(2)
    products = x[i] * y[j]
    d[i, j] = products[0]


@pytest.mark.parametrize(
    ("kernel", "advice"),
    [
        (sums_a_row, "loop over"),
        (matrix_product, "no product of arrays, @"),
        (broadcasts, "x[i, None, 0] is an array"),
        (multiplies_rows, "x[i] * y[j] would make an array"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_rows_as_on_the_host(kernel, advice):
    def distances(rng, n):
        x, y = rng.random((2, 8, 3), np.float32)
        return Case({"x": x, "y": y, "d": None}, {"d": ((x[:, None] - y) ** 2).sum(axis=2)})

    error = failure(kernel, distances, sizes=[8], launches=[((1, 1), (8, 8))])
    assert error.kind == "compile"
    assert advice in error.look_at


def test_a_row_for_an_element():
    def grey(rng, n):
        pixels = rng.random((n, 3), np.float32)
        return Case({"pixels": pixels, "out": None}, {"out": pixels.sum(axis=1)})

    error = failure(takes_a_row, grey)
    assert "out[i] = pixels[3 * i]\nHas pixels two dimensions?" in error.look_at


def test_a_result_that_is_stored_nowhere():
    error = failure(rebinds, SUM)
    assert error.kind == "not written"
    assert "out = x[i] + y[i]" in error.look_at
    assert "name the element: out[i] = x[i] + y[i]" in error.look_at


@cuda.jit
def compares(x, y, out):
    i = cuda.grid(1)
    out[i] == x[i] + y[i]  # noqa: B015


@cuda.jit
def keeps_nothing(x, y, out):
    i = cuda.grid(1)
    x[i] + y[i]


@cuda.jit
def names_a_barrier(x, y, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t] + y[t]
    cuda.syncthreads  # noqa: B018
    out[63 - t] = tile[63 - t]


def test_a_barrier_that_is_not_called_is_named_in_place_of_the_race():
    error = failure(names_a_barrier, SUM, sizes=[64], launches=[(1, 64)])
    assert error.kind == "race"
    assert "This only names cuda.syncthreads. Call it: cuda.syncthreads()." in error.look_at


@pytest.mark.parametrize(
    ("kernel", "meant"), [(compares, "== compares; = stores."), (keeps_nothing, "Nothing keeps this value: store it")]
)
def test_a_kernel_that_computes_for_nobody_is_told_so(kernel, meant):
    assert meant in failure(kernel, SUM, sizes=[32], launches=[(1, 32)]).look_at


def test_a_notebook_says_it_in_place_of_numba_s_own_message():
    x, y, out = np.ones((3, 32), np.float32)
    with pytest.raises(Exception, match="return_value") as caught:
        returns[1, 32](x, y, out)
    InteractiveShell.instance()
    try:
        lines = short_traceback(caught.value)
    finally:
        InteractiveShell.clear_instance()
    said = next(number for number, line in enumerate(lines) if "A kernel returns nothing" in line)
    assert "%xmode Verbose" in lines[said + 1]
    assert len(lines) == said + 2


def test_outside_of_a_notebook_numba_s_message_is_whole():
    x, y, out = np.ones((3, 32), np.float32)
    with pytest.raises(Exception, match="return_value") as caught:
        returns[1, 32](x, y, out)
    *_, note, said = short_traceback(caught.value)
    assert "A kernel returns nothing" in note
    assert said == f"{type(caught.value).__name__}: {caught.value}"


@cuda.jit
def stores_where_it_may_not(x, n):
    i = cuda.grid(1)
    if i < n:
        x[i] = 1


def test_an_array_that_is_read_only_is_named_so():
    with pytest.raises(TypingError) as caught:
        stores_where_it_may_not[1, 8](np.broadcast_to(np.float32(1), 8), 8)
    (note,) = caught.value.__notes__
    assert "read-only on the host" in note
    assert "launch it with a copy, x.copy()" in note


def test_of_other_errors_the_line_alone_is_told():
    assert "no_such_function" in failure(unknown_function, SUM).got
    assert re.fullmatch(
        r"line \d+: out\[0\] = math\.no_such_function\(x\[0\]\)", failure(unknown_function, SUM).look_at
    )


def test_a_float_that_is_halved_is_not_taken_for_the_mistake():
    error = failure(halved_value, SUM)
    assert "write y[i]" in error.look_at
    assert "value starts as" not in error.look_at


@cuda.jit
def joins_with_a_bit(x, y, out):
    i = cuda.grid(1)
    if i < out.size & 0 <= i:
        out[i] = x[i] + y[i]


@cuda.jit
def steps_by_the_size(x, y, out):
    for i in range(cuda.grid(1), cuda.gridsize(1), out.size):
        out[i] = x[i] + y[i]


def test_a_range_whose_end_and_step_are_exchanged_is_told_so():
    meant = "It starts at cuda.grid(1), ends before cuda.gridsize(1), and steps by out.size: range(start, end, step)."
    for launch in ((1, 32), (8, 128)):  # too few threads, and too many
        assert meant in failure(steps_by_the_size, SUM, sizes=[100], launches=[launch]).look_at


def test_a_guard_joined_by_an_operator_on_bits_is_told_so():
    error = failure(joins_with_a_bit, SUM)
    assert "wrote nothing" in error.problem
    assert "& binds closer than a comparison: write and." in error.look_at
