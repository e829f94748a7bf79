# tries: hands over PTX of 8,000 branches that cross, which keep whoever orders them busy
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


lines = [f"C{i}: setp.eq.u32 %pc, %rc, {i}; @%pc bra C{i * 7919 % 8000}; add.u32 %rc, %rc, 1;" for i in range(8000)]
more = ".reg .pred %pc;\n.reg .b32 %rc;\nmov.u32 %rc, %tid.x;\n" + "\n".join(lines) + "\n"
program = agent._program
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{\n", "{\n" + more, 1)}
