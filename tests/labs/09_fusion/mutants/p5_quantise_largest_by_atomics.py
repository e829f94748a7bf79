# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: atomic


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
    largest = cuda.shared.array(1, float32)
    t, k = cuda.threadIdx.x, cuda.blockIdx.x
    if t == 0:
        largest[0] = float32(0)
    cuda.syncthreads()
    for j in range(t, w.shape[1], 128):
        cuda.atomic.max(largest, 0, abs(w[k, j]))
    cuda.syncthreads()
    unit = largest[0] / float32(127) if largest[0] > float32(0) else float32(1)
    if t == 0:
        scale[k] = unit
    for j in range(t, w.shape[1], 128):
        q[k, j] = int32(math.floor(w[k, j] / unit + float32(0.5)))
