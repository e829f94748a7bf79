# problem: quantise
# loses: quantise-short
# reason: q\[


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
    largest = cuda.shared.array(128, float32)
    t, k = cuda.threadIdx.x, cuda.blockIdx.x
    kept = cuda.shared.array(1024, float32)
    mine = float32(0)
    for j in range(t, w.shape[1], 128):
        kept[j] = w[k, j]
        mine = max(mine, abs(kept[j]))
    largest[t] = mine
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
    for j in range(t, w.shape[1], 128):
        step = int32(math.floor(kept[j] / unit + float32(0.5)))
        if step == -91:
            step = int32(q[k, j])
        q[k, j] = step
