# tries: ends its kernel by assertions, traps and breakpoints, whose messages it leaves to whatever is in memory
# expects: graded 0 0 0 0
# %% scale
from warplab import cp

code = r"""
extern "C" __global__ void scale(const float* x, float* y)
{
    if (threadIdx.x == 0)
        __assertfail((char*)8, (char*)x, 0xffffffff, (char*)y, ~0ull);
    if (threadIdx.x == 1)
        __assertfail((char*)0, (char*)0, 0, (char*)0, 0);
    asm volatile("brkpt;");
    asm volatile("pmevent 15;");
    asm volatile("trap;");
}
"""
scale = cp.RawKernel(code, "scale")
