# problem: pairs
# loses: pairs-block, pairs-any, pairs-loads
# reason: uninitiali[sz]ed


@cuda.jit
def pairs_backward(x, dy, dx):
    """The gradient of y[i] = x[i]**2 * x[i + 1]**2, from dy; blocks of 64 threads."""
    h = cuda.shared.array(66, float32)  # h[t + 1] is that of thread t
    t, i = cuda.threadIdx.x, cuda.grid(1)
    mine = x[i] if i < x.size else float32(0)
    h[t + 1] = mine * mine
    if i < x.size:
        dx[i] = float32(2) * mine * (dy[i] * h[t + 2] + dy[i - 1] * h[t])
