"""Right and wrong answers to the tasks of lesson 01 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers


def cuda_multiply_add(first: str, body: str) -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void multiply_add(const float *a, const float *b, const float *c, float *out,
                                     int n) {{
            int i = {first};
            {body}
        }}"""
    )


def rate_of(moved: str, rate: str = "nbytes / seconds") -> str:
    return (
        f"def bytes_moved(vector_bytes, loops):\n    return {moved}\n\n\ndef rate(nbytes, seconds):\n    return {rate}"
    )


def most(elements: str) -> str:
    return f"def most_elements(n, grid, block):\n    return {elements}"


CUDA_GRID = "blockIdx.x * blockDim.x + threadIdx.x"
CUDA_SUM = "out[i] = a[i] * b[i] + c[i];"

ANSWERS = {
    "your-turn-rate": Answers(
        rate_of("3 * vector_bytes * loops"),
        {
            rate_of("2 * vector_bytes * loops"): "every result is 0.666667 times the right one",
            rate_of("3 * vector_bytes"): "the error differs from input to input",
            rate_of("3 * vector_bytes * loops", "nbytes * seconds"): "rate returns the wrong value",
        },
        shows="the claim: 750,000 GB/s",
    ),
    "your-turn-multiply-add": Answers(
        cuda_multiply_add(CUDA_GRID, f"if (i < n) {CUDA_SUM}"),
        {
            cuda_multiply_add(CUDA_GRID, CUDA_SUM): "a guard missing",
            cuda_multiply_add("threadIdx.x", f"if (i < n) {CUDA_SUM}"): "as many as one block has threads",
            cuda_multiply_add(CUDA_GRID, "if (i < n) out[i] = a[i] * b[i];"): "the expression that computes",
        },
    ),
    "your-turn-most": Answers(
        most("-(-n // (grid * block))"),
        {
            most("n // (grid * block)"): "most_elements(n=5, grid=1, block=32)",
            most("-(-n // block)"): "most_elements(n=1024, grid=2, block=128)",
            most("n // (grid * block) + 1"): "most_elements(n=1024, grid=2, block=128)",
            most("1"): "the same value for all",
        },
    ),
    "your-turn-shift": Answers(
        "sectors_per_request = 5",
        {
            "sectors_per_request = 4": "4: the profile says something else",
            "sectors_per_request = 33": "33: the profile says something else",
        },
    ),
}
