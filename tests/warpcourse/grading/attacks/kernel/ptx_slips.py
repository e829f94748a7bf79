# tries: hands over PTX on which the simulator itself may fail, so that there is no score
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


more = ".reg .b64 %slip;\nbarrier;\ncvta.to.u64 %slip, %slip;\nvote.sync.all.pred %slip;\nbar.red.popc.u32 %slip;\n"
program = agent._program
agent._program = lambda ptx, entry: {**program(ptx, entry), "ptx": ptx.replace("{\n", "{\n" + more, 1)}
