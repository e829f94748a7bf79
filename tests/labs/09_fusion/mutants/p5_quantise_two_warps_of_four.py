# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: too few threads that write


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
    largest = cuda.shared.array(128, float32)
    mine = cuda.shared.array(1024, float32)
    t, k = cuda.threadIdx.x, cuda.blockIdx.x
    most = float32(0)
    if 32 <= t < 96:
        for j in range(t - 32, w.shape[1], 64):
            mine[j] = w[k, j]
            most = max(most, abs(mine[j]))
    largest[t] = most
    cuda.syncthreads()
    half = 64
    while half:
        if t < half:
            largest[t] = max(largest[t], largest[t + half])
        cuda.syncthreads()
        half //= 2
    unit = largest[0] / float32(127) if largest[0] > float32(0) else float32(1)
    if t == 0:
        scale[k] = unit
    if 32 <= t < 96:
        for j in range(t - 32, w.shape[1], 64):
            q[k, j] = int32(math.floor(mine[j] / unit + float32(0.5)))
