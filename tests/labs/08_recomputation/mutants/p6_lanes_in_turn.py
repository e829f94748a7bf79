# problem: pairs
# loses: pairs-block, pairs-any, pairs-loads
# reason: too much of the work|too many warp instructions|the warp efficiency is too low


@cuda.jit
def pairs_backward(x, dy, dx):
    """The gradient of y[i] = x[i]**2 * x[i + 1]**2, from dy; blocks of 64 threads."""
    h = cuda.shared.array(66, float32)  # h[t + 1] is that of thread t
    t, i = cuda.threadIdx.x, cuda.grid(1)
    mine = x[i] if i < x.size else float32(0)
    h[t + 1] = mine * mine
    if t == 0 and i > 0:
        h[0] = x[i - 1] * x[i - 1]
    if t == 63 and i + 1 < x.size:
        h[65] = x[i + 1] * x[i + 1]
    cuda.syncthreads()
    for turn in range(32):
        if t % 32 == turn and i < x.size:
            total = float32(0)
            if i + 1 < x.size:
                total += dy[i] * h[t + 2]
            if i > 0:
                total += dy[i - 1] * h[t]
            dx[i] = float32(2) * mine * total
