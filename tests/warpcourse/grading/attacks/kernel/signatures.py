# tries: describes its kernel by types and parameters other than those that it was compiled for
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i]


kernel = agent._kernel


def described(source, wanted):
    found = kernel(source, wanted)
    wide = ["array", "float64", 1, "C", True, True]
    return found | {"parameters": ["y", "x", "z"] * 20, "signatures": [["int64", wide], [wide, wide], []]}


agent._kernel = described
