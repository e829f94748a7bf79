# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: too many shared load|too much of the work


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
    if t == 0:
        most = float32(0)
        for i in range(0, 128, 8):
            most = max(most, largest[i])
            most = max(most, largest[i + 1])
            most = max(most, largest[i + 2])
            most = max(most, largest[i + 3])
            most = max(most, largest[i + 4])
            most = max(most, largest[i + 5])
            most = max(most, largest[i + 6])
            most = max(most, largest[i + 7])
        largest[0] = most
    cuda.syncthreads()
    unit = largest[0] / float32(127) if largest[0] > float32(0) else float32(1)
    if t == 0:
        scale[k] = unit
    for j in range(t, w.shape[1], 128):
        q[k, j] = int32(math.floor(w[k, j] / unit + float32(0.5)))
