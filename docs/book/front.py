"""The front page's kernel; what this prints stands beside it."""

import numpy as np

from warplab import cuda, estimate, profile, simulator


@cuda.jit
def every_other(a, b, out):
    i = cuda.grid(1)
    out[i] = a[2 * i] * b[i]


def launch(n):
    a, b = (cuda.to_device(np.ones(size, np.float32)) for size in (2 * n, n))
    with profile() as p:
        every_other[4, 256](a, b, cuda.device_array(n, np.float32))
    return p


try:
    launch(1000)
except simulator.SimulatorError as error:
    print(error, end="\n\n")
p = launch(1024)
rows = ("global load requests", "global load sectors", "sectors per load", "load efficiency")
for row in str(p).splitlines():
    if row.startswith(rows):
        print(row.partition("  l1tex")[0].partition("  smsp")[0])
print("", str(estimate(p, "H100")).splitlines()[0].partition(" on ")[2], sep="\n")
