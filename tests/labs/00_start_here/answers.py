"""Right and wrong answers to the tasks of lesson 00 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers, one_line

PYTHON_GRID = "cuda.grid(1)"
GUARD = "if i < out.size:"
INSIDE = "if i < x.size:"
EVERYBODY = "Does every thread do all the work?"
SERIAL = "one thread does too much of the work"


def numba_kernel(head: str, first: str, *body: str) -> str:
    return "\n".join([f"@cuda.jit\ndef {head}:\n    i = {first}", *(f"    {line}" for line in body)])


def serial(head: str, assignment: str) -> str:
    """All elements by the first thread."""
    loop = "for i in range(out.size):", f"    {assignment}"
    return "\n".join([f"@cuda.jit\ndef {head}:\n    if cuda.grid(1) == 0:", *(f"        {line}" for line in loop)])


TRIPLE = "triple(x)"
BLOCKS = "blocks_for(n, block)"
REPEAT = "repeat(x, out)"
DIFFERENCE = "difference(x, out)"
RELU = "relu(x, out)"
ADD = "add(x, y, out)"
SUM = "out[i] = x[i] + y[i]"
NO_NEIGHBOUR = "elif i == out.size - 1:", "    out[i] = 0"

ANSWERS = {
    "your-turn-add": Answers(
        numba_kernel(ADD, PYTHON_GRID, f"{GUARD} {SUM}"),
        {
            numba_kernel(ADD, PYTHON_GRID, SUM): "the guard",
            numba_kernel(ADD, "cuda.threadIdx.x", f"{GUARD} {SUM}"): "as many as one block has threads",
            numba_kernel(ADD, PYTHON_GRID, f"if i < out.size - 1: {SUM}"): "the last of 1000 elements",
            numba_kernel(ADD, PYTHON_GRID, f"{GUARD} out[i] = x[i] * y[i]"): "the expression that computes",
            "def add(x, y, out):\n    out[:] = x + y": "runs on the host",
            numba_kernel(ADD, PYTHON_GRID, f"{GUARD} out = x[i] + y[i]"): "name the element: out[i] = x[i] + y[i]",
            numba_kernel(ADD, "cuda.grid()", f"{GUARD} {SUM}"): "asks for the number of dimensions",
            serial(ADD, SUM): SERIAL,
            "@cuda.jit\ndef add(x, y, out):\n    for i in range(out.size):\n        out[i] = x[i] + y[i]": EVERYBODY,
        },
    ),
    "your-turn-triple": Answers(
        numba_kernel(TRIPLE, PYTHON_GRID, f"{INSIDE} x[i] = 3 * x[i]"),
        {
            numba_kernel(TRIPLE, PYTHON_GRID, "x[i] = 3 * x[i]"): "the guard",
            numba_kernel(TRIPLE, PYTHON_GRID, f"{INSIDE} x[i] = 2 * x[i]"): "the expression that computes",
            numba_kernel(TRIPLE, PYTHON_GRID, f"{INSIDE} x = 3 * x[i]"): "name the element: x[i] = 3 * x[i]",
            "@cuda.jit\ndef triple(x):\n    x[:] = 3 * x": "A kernel is what one thread does",
            "@cuda.jit\ndef triple(x):\n    if cuda.grid(1) == 0:\n"
            "        for i in range(x.size):\n            x[i] = 3 * x[i]": "all of it, although the launch has",
        },
    ),
    "your-turn-blocks": Answers(
        one_line(BLOCKS, "-(-n // block)"),
        {
            one_line(BLOCKS, "n // block"): "blocks_for(n=100, block=32)",
            one_line(BLOCKS, "n // block + 1"): "blocks_for(n=128, block=32)",
            one_line(BLOCKS, "4"): "the same value for all",
        },
    ),
    "your-turn-repeat": Answers(
        numba_kernel(REPEAT, PYTHON_GRID, f"{GUARD} out[i] = x[i // 4]"),
        {
            numba_kernel(REPEAT, PYTHON_GRID, f"{GUARD} out[i] = x[i / 4]"): "write i // 4",
            numba_kernel(REPEAT, PYTHON_GRID, "if i < x.size: out[i] = x[i // 4]"): "only the first 1000 of 4000",
            numba_kernel(REPEAT, PYTHON_GRID, f"{GUARD} out[i] = x[i % x.size]"): "out is wrong",
            serial(REPEAT, "out[i] = x[i // 4]"): SERIAL,
        },
    ),
    "your-turn-difference": Answers(
        numba_kernel(DIFFERENCE, PYTHON_GRID, "if i < out.size - 1:", "    out[i] = x[i + 1] - x[i]", *NO_NEIGHBOUR),
        {
            numba_kernel(DIFFERENCE, PYTHON_GRID, f"{GUARD} out[i] = x[i + 1] - x[i]"): "past the end of x",
            numba_kernel(DIFFERENCE, PYTHON_GRID, "if i < out.size - 1: out[i] = x[i + 1] - x[i]"): "the last",
            serial(DIFFERENCE, "out[i] = x[i + 1] - x[i] if i + 1 < x.size else 0"): SERIAL,
        },
    ),
    "your-turn-relu": Answers(
        numba_kernel(RELU, PYTHON_GRID, f"{GUARD} out[i] = max(x[i], 0)"),
        {
            numba_kernel(RELU, PYTHON_GRID, f"{GUARD} out[i] = abs(x[i])"): "out is wrong",
            numba_kernel(RELU, PYTHON_GRID, f"{GUARD} out[i] = max(x, 0)"): "x is a whole array",
            numba_kernel(
                RELU, PYTHON_GRID, "if i < out.size and x[i] > 0: out[i] = x[i]"
            ): "Every element needs a store",
            serial(RELU, "out[i] = max(x[i], 0)"): SERIAL,
        },
    ),
}
