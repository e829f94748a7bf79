# tries: hands over PTX that sleeps, waits for the clock, and asks for the heap of the device
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
more = """{ .reg .u32 %n; .reg .u64 %t; .reg .pred %p;
again:
nanosleep.u32 1000000000;
mov.u64 %t, %globaltimer;
setp.lt.u64 %p, %t, 0xffffffffffffffff;
@%p bra again; }
"""
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{\n", "{\n" + more, 1)}
