# tries: keeps the CUDA C++ compiler busy endlessly
# expects: timeout 0 0 0 0
# tight: notebook 6


# %% scale
from warplab import cp

# Each macro expands to twice what the one before does, which is nothing: 2**40 expansions in little memory.
macros = "#define A0\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(40))
code = macros + 'A40\nextern "C" __global__ void show(long* x) { x[0] = 1; }'
cp.RawModule(code=code).get_function("show")((1,), (1,), (cp.zeros(1, "int64"),))
