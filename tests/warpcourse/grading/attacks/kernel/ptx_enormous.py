# tries: hands over PTX of 20 MB
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx + "\n// x" * 4_000_000}
