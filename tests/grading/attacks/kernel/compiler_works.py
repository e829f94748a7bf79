# tries: keeps the CUDA C++ compiler busy endlessly
# expects: timeout 0 0 0 0
# tight: notebook 6


# %% scale
from warplab import cp

code = """
template <int n, int m> struct Work { static const long value = Work<n - 1, m>::value + Work<n - 1, m + (1 << (n % 30))>::value; };
template <int m> struct Work<0, m> { static const long value = m; };
extern "C" __global__ void show(long* x) { x[0] = Work<28, 0>::value; }
"""
cp.RawModule(code=code).get_function("show")(1, 1, (cp.zeros(1, "int64"),))
