# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: never written


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    j, i = cuda.grid(2)
    j, i = j & 127, i & 127
    if i < out.shape[1] and j < out.shape[2]:
        y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
        inside = 0 <= y < frame.shape[0] and 0 <= x < frame.shape[1]
        for c in range(3):
            value = float32(0)
            if inside:
                value = (float32(frame[y, x, c]) - mean[c]) * scale[c]
            out[c, i, j] = value
