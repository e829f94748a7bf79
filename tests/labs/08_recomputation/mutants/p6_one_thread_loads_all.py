# problem: pairs
# loses: pairs-block, pairs-any, pairs-loads
# reason: too much of the work|too many warp instructions|the warp efficiency is too low


@cuda.jit
def pairs_backward(x, dy, dx):
    """The gradient of y[i] = x[i]**2 * x[i + 1]**2, from dy; blocks of 64 threads."""
    t, i = cuda.threadIdx.x, cuda.grid(1)
    mine = float32(0)
    h = cuda.shared.array(66, float32)
    all_x = cuda.shared.array(66, float32)
    if t == 0:
        for k in range(66):
            at = i - 1 + k
            value = x[at] if 0 <= at < x.size else float32(0)
            all_x[k] = value
            h[k] = value * value
    cuda.syncthreads()
    mine = all_x[t + 1]
    if i < x.size:
        total = float32(0)
        if i + 1 < x.size:
            total += dy[i] * h[t + 2]
        if i > 0:
            total += dy[i - 1] * h[t]
        dx[i] = float32(2) * mine * total
