# tries: prints by formats that are enormous, and that read and write where their arguments point
# expects: graded 0 0 0 0
# %% scale
from warplab import cp

code = r"""
extern "C" __global__ void scale(const float* x, float* y)
{
    printf("%999999999d %.999999999f %0*d\n", 1, 1.0, 2147483647, 1);
    printf("%1$s%9$s%%%{}{0.__class__}%(a)s%c%lc%n%hhn", 1, 2, 300, y, y);
    printf("%.*s%.2147483647s\n", -1, (const char*)x, (const char*)x);
    printf((const char*)x);
}
"""
scale = cp.RawKernel(code, "scale")
