# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: one thread does too much of the work|too few threads that write


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
    largest = cuda.shared.array(128, float32)
    t, k = cuda.threadIdx.x, cuda.blockIdx.x
    mine = float32(0)
    for j in range(t, w.shape[1], 128):
        mine = max(mine, abs(w[k, j]))
    largest[t] = mine
    cuda.syncthreads()
    half = 64
    while half:
        if t < half:
            largest[t] = max(largest[t], largest[t + half])
        cuda.syncthreads()
        half //= 2
    unit = largest[0] / float32(127) if largest[0] > float32(0) else float32(1)
    parts = cuda.shared.array(1024, float32)
    for j in range(t, w.shape[1], 128):
        parts[j] = w[k, j]
    cuda.syncthreads()
    if t == 127:
        scale[k] = unit
    if t < 32:
        for j in range(t, w.shape[1], 32):
            q[k, j] = int32(math.floor(parts[j] / unit + float32(0.5)))
