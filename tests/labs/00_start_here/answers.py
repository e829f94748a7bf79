"""Right and wrong answers to the tasks of lesson 00 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers


def numba_add(first: str, body: str) -> str:
    return f"@cuda.jit\ndef add(x, y, out):\n    i = {first}\n    {body}"


PYTHON_GRID = "cuda.grid(1)"
PYTHON_SUM = "out[i] = x[i] + y[i]"

ANSWERS = {
    "your-turn-add": Answers(
        numba_add(PYTHON_GRID, f"if i < out.size: {PYTHON_SUM}"),
        {
            numba_add(PYTHON_GRID, PYTHON_SUM): "the guard",
            numba_add("cuda.threadIdx.x", f"if i < out.size: {PYTHON_SUM}"): "as many as one block has threads",
            numba_add(PYTHON_GRID, f"if i < out.size - 1: {PYTHON_SUM}"): "the last of 1000 elements",
            numba_add(PYTHON_GRID, "if i < out.size: out[i] = x[i] * y[i]"): "the expression that computes",
            "def add(x, y, out):\n    out[:] = x + y": "runs on the host",
            numba_add(
                PYTHON_GRID, "if i == 0:\n        for j in range(out.size): out[j] = x[j] + y[j]"
            ): "too much of the",
            numba_add(PYTHON_GRID, "for i in range(out.size): out[i] = x[i] + y[i]"): "too much of the work",
        },
    ),
}
