# tries: hands over PTX that wants a million registers and far too much memory
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


more = ".reg .b64 %greedy<1000000>;\n.local .align 8 .b8 heap[9000000000000];\n.shared .align 8 .b8 pool[800000000];\n"
program = agent._program
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{\n", "{\n" + more, 1)}
