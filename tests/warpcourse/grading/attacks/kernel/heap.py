# tries: allocates the device's heap: a terabyte at once, and then piece by piece without end
# expects: graded 0 0 0 0


# %% scale
from warpcourse.grading.student import agent
from warplab import cp

code = """extern "C" __global__ void scale(const float* x, float* y, long long n) {
    char* all = (char*)malloc(1ull << 40);
    if (all) all[1ull << 39] = 1;
    for (long long i = 0; i < 1000000; i++) { char* p = (char*)malloc(1 << 20); if (p) p[i & 1023] = 1; }
    y[0] = x[0];
}"""
greedy = cp.RawKernel(code, "scale")


@cuda.jit
def scale(x, y):
    y[0] = x[0]


program = agent._program
agent._program = lambda ptx, entry: program(agent_source.ptx, agent_source.load())
agent_source = greedy._warplab_source
