# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: one thread does too much of the work|race


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
    for k in range(w.shape[0]):
        most = float32(0)
        for j in range(w.shape[1]):
            most = max(most, abs(w[k, j]))
        unit = most / float32(127) if most > float32(0) else float32(1)
        scale[k] = unit
        for j in range(w.shape[1]):
            q[k, j] = int32(math.floor(w[k, j] / unit + float32(0.5)))
