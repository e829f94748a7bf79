"""Failures for accesses outside arrays: the access, what was written there, where to look."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernel_checks import INDEX, PRODUCT, cuda_kernel, failure, failure_on_one_warp
from warplab import checks, cuda
from warplab.checks.cases import elementwise


def test_elements_written_in_front_are_found():
    error = failure(cuda_kernel("c[(int)threadIdx.x - 3] = 1;"), PRODUCT, sizes=[32], launches=[(1, 32)])
    assert error.problem == "f: a store to c[-3] reaches before the start of c (32 elements)."
    assert error.got.endswith("Allowed to continue, the kernel wrote 3 elements before the start of c.")
    assert error.look_at == "the index: it becomes negative"


def test_a_read_outside_is_reported_with_the_array():
    kernel = cuda_kernel(INDEX + "if (i < n) c[i] = a[i] * b[i + 1];")
    error = failure(kernel, PRODUCT)
    assert error.problem == "f: a load of b[1000] reaches past the end of b (1000 elements)."
    assert "a load of 4 bytes" in error.got
    assert "guard" not in error.got
    assert error.look_at == "the index into b: the thread reads b[1000] to compute c[999]"


FAULTY = "for (int i = threadIdx.x; i <= n; i += blockDim.x) c[i] = a[i] * b[{index}];"


@pytest.mark.parametrize("block", [1, 32])
def test_an_illegal_load_and_a_store_outside_are_told_apart(block):
    """If the store outside is another element's, the message is about the load alone."""
    launch = {"sizes": [100], "launches": [(1, block)]}
    error = failure(cuda_kernel(FAULTY.format(index="n - i")), PRODUCT, **launch)
    assert error.problem == "f: a load of b[100] reaches past the end of b (100 elements)."
    assert error.look_at == "the index into b: the thread reads b[100] to compute c[0]"
    assert "wrote" not in str(error)
    error = failure(cuda_kernel(FAULTY.format(index="n - 1 - i")), PRODUCT, **launch)
    assert error.problem == "f: a load of b[-1] reaches before the start of b (100 elements)."
    assert "wrote one element past the end of c, index 100 of an array of 100" in error.got
    assert error.look_at == "the index, and the size it is compared with: is n itself a valid index?"


def test_writes_past_the_end_are_found_even_if_bands_are_added_up():
    """With one pattern in three guard bands, a * b + c would be that pattern again, as if nothing had been written."""
    product_sum = elementwise(lambda a, b, c: a * b + c, ("a", "b", "c"), "d", length="n")
    parameters = "const float* a, const float* b, const float* c, float* d, int n"
    error = failure(cuda_kernel(INDEX + "d[i] = a[i] * b[i] + c[i];", parameters), product_sum)
    assert "wrote 24 elements past the end of d: 1024 threads, 1000 elements" in error.got
    assert error.look_at == "the guard: what must a thread do that has no element?"


@pytest.mark.parametrize("index", ["i + 100000000", "i + 20000", "i - 100000000"])
def test_an_access_far_outside_says_where_to_look(index):
    error = failure(cuda_kernel(INDEX + f"if (i < n) c[{index}] = a[i] * b[i];"), PRODUCT)
    assert error.got.startswith("illegal address: a store of 4 bytes")
    assert "index" in error.look_at


def test_wrong_width_is_explained():
    kernel = cuda_kernel(INDEX + "if (i < n) ((double*)c)[i] = a[i] * b[i];")
    assert "c has elements of 4 bytes, but the kernel accesses 8 bytes at a time" in failure(kernel, PRODUCT).look_at


def test_a_load_into_a_tile_is_not_tied_to_the_threads_element():
    body = """\
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = a[t], tile[t + 32] = a[t + 32];
    __syncthreads();
    out[t] = 2 * tile[t];"""
    error = failure_on_one_warp(body)
    assert error.problem == "f: a load of a[32] reaches past the end of a (32 elements)."
    assert error.look_at == "the index into a, and the guard of the load into shared memory: the last element is a[31]"


def test_with_tiles_a_load_and_a_store_outside_are_both_named():
    body = """\
    __shared__ float tile[32];
    int t = threadIdx.x;
    tile[t] = a[t];
    __syncthreads();
    out[t] = 2 * tile[t];"""
    error = failure_on_one_warp(body, n=27)
    first, second = error.look_at.splitlines()
    assert first == "the index into a, and the guard of the load into shared memory: the last element is a[26]"
    assert second == "and the guard: what must a thread do that has no element?"


def test_stores_far_outside_point_to_the_guard_not_to_its_bound():
    body = "    out[threadIdx.x] = 2 * a[min(threadIdx.x, n - 1)];\n    if (threadIdx.x > 20) out[threadIdx.x + 3] = 1;"
    error = failure_on_one_warp(body, n=27)
    assert error.look_at.startswith("the index and the guard of the store"), error


def test_an_index_that_is_too_large_by_one_is_named_where_nothing_compares_it():
    error = failure(
        cuda_kernel("c[threadIdx.x + 1] = a[threadIdx.x] * b[threadIdx.x];"), PRODUCT, launches=[lambda n: (1, n)]
    )
    assert error.look_at.startswith("the index, and ")


TABLE = "int x = threadIdx.x, y = threadIdx.y; if ({guard}) out[y * columns + x] = a[y] * b[x];"
INSIDE = "must all be inside, and is a size itself a valid index?"


def products(rng, size):
    a, b = (checks.distinct(rng, n) for n in size)
    return checks.Case({"a": a, "b": b, "out": None, "columns": np.int32(size[1])}, {"out": np.outer(a, b)})


@pytest.mark.parametrize("guard", ["y < 3 || x < 5", "y <= 3 && x <= 5"])
def test_a_guard_that_lets_a_column_through_is_not_taken_for_the_index(guard):
    """The address of out[0, 5] is that of out[1, 0], and so inside."""
    kernel = cuda_kernel(TABLE.format(guard=guard), "const float* a, const float* b, float* out, int columns")
    error = failure(kernel, products, sizes=[(3, 5)], launches=[(1, (7, 6))])
    assert error.problem == "f: a load of b[5] reaches past the end of b (5 elements)."
    assert error.look_at.startswith("the index into b: the last element is b[4]; and the guard: ")
    assert error.look_at.endswith(INSIDE)


@cuda.jit
def doubles(a, out):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    if column < out.shape[1]:
        out[row, column] = 2 * a[row, column]


@cuda.jit
def doubles_by_or(a, out):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    if row < out.shape[0] or column < out.shape[1]:
        out[row, column] = 2 * a[row, column]


@cuda.jit
def doubles_one_too_many(a, out):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    if row < len(out) and column <= out.shape[1]:
        out[row, column] = 2 * a[row, column]


@cuda.jit
def doubles_or_leaves(a, out):
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    if row < 0 or column < 0 or row > len(out) or column >= out.shape[1]:
        return
    out[row, column] = 2 * a[row, column]


def doubled_matrix(rng, size):
    a = checks.distinct(rng, size[0] * size[1]).reshape(size)
    return checks.Case({"a": a, "out": None}, {"out": 2 * a})


def test_elements_of_a_matrix_are_counted_row_by_row():
    error = failure(doubles, doubled_matrix, sizes=[(3, 5)], launches=[(1, (7, 6))])
    assert (
        error.problem
        == "doubles: a load of element 15 of a, counted row by row, reaches past the end of a (3 × 5 elements)."
    )
    assert error.got.endswith("up to index 29 of an array of 15, counted row by row.")
    assert error.look_at.endswith(INSIDE)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (doubles_by_or, "or lets a thread through that is inside in one of the two alone: write and."),
        (doubles_one_too_many, "<= lets the size itself through, which is no index: write <."),
        (doubles_or_leaves, INSIDE),
    ],
)
def test_a_guard_that_lets_too_many_through_is_shown(kernel, said):
    error = failure(kernel, doubled_matrix, sizes=[(3, 5)], launches=[(1, (7, 6))])
    assert error.look_at.endswith(said)
    assert ("if row < " in error.look_at) == (said != INSIDE)


def block_sums(rng, n):
    a = checks.summable(rng, n)
    return checks.Case({"a": a, "out": None}, {"out": a.reshape(-1, 32).sum(axis=1)})


def test_a_result_of_each_block_stored_at_the_threads_index_is_told_so():
    kernel = cuda_kernel(INDEX + "out[i] = a[i];", "const float* a, float* out")
    error = failure(kernel, block_sums, sizes=[96], launches=[(3, 32)])
    assert error.look_at == "the index into out, which has one element for each block"
    assert "guard" not in error.got


def test_a_store_of_one_element_past_the_end_is_not_called_one_of_four():
    body = """\
    int i = threadIdx.x;
    if (4 * i + 3 < n) reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(a)[i];
    if (i == 31) out[n] = 1;"""
    error = failure_on_one_warp(body)
    assert "wrote one element past the end of out, index 32 of an array of 32" in error.got
    assert error.look_at == "the index, and the size it is compared with: is n itself a valid index?"


@cuda.jit
def shifted_cube(a, out):
    i = cuda.grid(1)
    plane, row, column = i // 20, i // 5 % 4, i % 5
    if plane < 3:
        out[plane, row, column] = a[plane, row, column + 1]


@cuda.jit
def summed_cube(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i // 20 + 1, i // 5 % 4, i % 5]


@pytest.mark.parametrize(
    ("kernel", "shape", "look_at"),
    [
        (shifted_cube, (3, 4, 5), "the index into a: the last element is a[2, 3, 4]; and the guard: "),
        (
            summed_cube,
            (60,),
            "the index into a: the thread reads element 60 of a, counted row by row, to compute out[40]",
        ),
    ],
)
def test_places_are_told_in_the_dimensions_of_their_array(kernel, shape, look_at):
    """The elements of arrays of three dimensions have three indices in Numba, not the one of the address."""

    def case(rng, n):
        a = checks.distinct(rng, n).reshape(3, 4, 5)
        return checks.Case({"a": a, "out": None}, {"out": np.zeros(shape, np.float32)})

    error = failure(kernel, case, sizes=[60], launches=[(2, 32)])
    assert "a load of element 60 of a, counted row by row," in error.problem
    assert error.look_at.startswith(look_at)
