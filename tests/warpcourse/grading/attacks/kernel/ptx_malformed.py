# tries: hands over text that is not PTX
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{", "}}{{").replace("ld.", "\0\\\n'''")}
