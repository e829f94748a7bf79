# tries: hands over PTX with numbers of other scripts, of a million digits, and names that are none
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
more = (
    """.reg .b32 %odd<3>;
mov.u32 %odd1, \u0663;
mov.u32 %odd1, """
    + "9" * 1_000_000
    + """;
mov.u32 %odd2, 0x"""
    + "f" * 1_000_000
    + """;
mov.b32 %odd2, 0f\u0660;
add.s32 \u2028, \x00, %odd1;
"""
)
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{\n", "{\n" + more, 1)}
