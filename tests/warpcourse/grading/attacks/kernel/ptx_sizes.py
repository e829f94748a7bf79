# tries: hands over PTX whose arrays have no size, a negative one, or fill all memory by alignment
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
more = """.shared .align 1073741824 .b8 a[1];
.local .align 0 .b8 b[-1];
.local .b8 c[0];
.shared .b8 d[99999999999999999999999];
.const .b64 e[4294967296];
.reg .b32 %many<99999999999>;
"""
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{\n", "{\n" + more, 1)}
