# tries: prints millions of lines of 4,095 characters from a kernel
# expects: graded 0 0 0 0


# %% scale
from warplab import cp

loud = cp.RawKernel(
    """extern "C" __global__ void scale(const float* x, float* y, long long n) {
    for (int i = 0; i < 1000; i++) printf("%4095d%4095d%4095.4095f\\x1b[2J\\n", i, i, 1e308);
    y[0] = x[0];
}""",
    "scale",
)


@cuda.jit
def scale(x, y):
    for i in range(100_000):
        print(x[0], y.size, i)
    y[0] = x[0]
