# problem: direct
# loses: direct-plain, direct-any, direct-work
# reason: one thread does too much of the work(.|\n)*(bytes loaded|floating-point)

import numpy as np

from warplab import cuda


@cuda.jit
def direct(x, w, y, padding, stride):
    mine = cuda.shared.array(64, np.float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if t % 2 == 0:
        for e in range(2):
            o = i + e
            if o < y.size:
                column = o % y.shape[3]
                rest = o // y.shape[3]
                row = rest % y.shape[2]
                rest = rest // y.shape[2]
                k = rest % y.shape[1]
                n = rest // y.shape[1]
                total = np.float32(0)
                for c in range(w.shape[1]):
                    for r in range(w.shape[2]):
                        a = min(max(row * stride - padding + r, 0), x.shape[2] - 1)
                        for s in range(w.shape[3]):
                            b = min(max(column * stride - padding + s, 0), x.shape[3] - 1)
                            total += x[n, c, a, b] * w[k, c, r, s]
                mine[t + e] = total
    cuda.syncwarp()
    if i < y.size:
        column = i % y.shape[3]
        row = i // y.shape[3] % y.shape[2]
        k = i // y.shape[3] // y.shape[2] % y.shape[1]
        n = i // y.shape[3] // y.shape[2] // y.shape[1]
        y[n, k, row, column] = mine[t]
