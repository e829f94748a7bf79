# tries: hands over PTX that claims blocks and registers that no launch has, and endless unrolling
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
agent._program = lambda ptx, entry: {
    **program(ptx, entry),
    "ptx": ptx.replace(
        "\n{\n", '\n.maxntid 0\n.reqntid 4294967296, 7\n.maxnreg -1\n{\n.pragma "unroll 999999999999";\n', 1
    ),
}
