# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: too many barriers


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    m = cuda.shared.array(3, float32)
    s = cuda.shared.array(3, float32)
    if cuda.threadIdx.y == 0 and cuda.threadIdx.x < 3:
        m[cuda.threadIdx.x] = mean[cuda.threadIdx.x]
        s[cuda.threadIdx.x] = scale[cuda.threadIdx.x]
    cuda.syncthreads()
    j, i = cuda.grid(2)
    if i < out.shape[1] and j < out.shape[2]:
        y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
        inside = 0 <= y < frame.shape[0] and 0 <= x < frame.shape[1]
        r = g = b = float32(0)
        for turn in range(2):
            if turn == cuda.threadIdx.x % 2 and inside:
                r, g, b = float32(frame[y, x, 0]) - m[0], float32(frame[y, x, 1]) - m[1], float32(frame[y, x, 2]) - m[2]
                r, g, b = r * s[0], g * s[1], b * s[2]
        out[0, i, j] = r
        out[1, i, j] = g
        out[2, i, j] = b
