# tries: hands over PTX of functions that call themselves and each other, directly and by a table
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
more = """.func (.reg .b32 %r) evil(.reg .b32 %a) { call (%r), live, (%a); call (%r), evil, (%a); ret; }
.func (.reg .b32 %r) live(.reg .b32 %a) { call (%r), evil, (%a); ret; }
.global .u64 table[2] = {evil, live};
"""
call = "{ .reg .b32 %o; call (%o), evil, (7); call (%o), live, (7); }\n"
agent._program = lambda ptx, entry: {
    **program(ptx, entry),
    "ptx": ptx.replace(".visible .entry", more + ".visible .entry", 1).replace("{\n", "{\n" + call, 1),
}
