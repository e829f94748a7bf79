# tries: describes a kernel by types that Numba refuses, so that there is no score
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = 3 * x[i]


nested = ["array", ["array", "float32", 1, "C", True, True], 1, "C", True, True]
kernel = agent._kernel
agent._kernel = lambda source, wanted: {**kernel(source, wanted), "signatures": [[nested, ["record", ">f4"]]]}
