# tries: hands over PTX whose names, files and strings are Python code
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i]


code = "__import__('os')._exit(0)"
program = agent._program


def lie(ptx, entry):
    answer = program(ptx, entry)
    answer["ptx"] = answer["ptx"].replace("%rd1,", f"%rd1[{code}],").replace(".file", f'.file 7 "\\"+{code}+\\"" //')
    return {**answer, "sources": {f"<{code}>": code}}


agent._program = lie
