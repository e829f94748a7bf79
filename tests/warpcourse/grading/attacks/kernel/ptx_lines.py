# tries: hands over PTX that names 100,000 files and lines beyond any number, with sources of megabytes
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
files = "".join(f'.file {n} "/etc/passwd{n}"\n' for n in range(5, 100_000))
lines = "".join(f".loc {n} {10**18 + n} {10**30}\n" for n in range(5, 2_000))
agent._program = lambda ptx, entry: {
    **program(ptx, entry),
    "ptx": ptx.replace("{\n", "{\n" + lines, 1) + files,
    "sources": {"/etc/passwd5": "x\n" * 900_000, "\x1b[2J": "y"},
}
