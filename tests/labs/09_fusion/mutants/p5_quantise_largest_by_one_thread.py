# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: too many global load requests


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
    largest = cuda.shared.array(1, float32)
    t, k = cuda.threadIdx.x, cuda.blockIdx.x
    if t == 0:
        mine = float32(0)
        for j in range(w.shape[1]):
            mine = max(mine, abs(w[k, j]))
        largest[0] = mine
    cuda.syncthreads()
    unit = largest[0] / float32(127) if largest[0] > float32(0) else float32(1)
    if t == 0:
        scale[k] = unit
    for j in range(t, w.shape[1], 128):
        q[k, j] = int32(math.floor(w[k, j] / unit + float32(0.5)))
