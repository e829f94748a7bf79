@cuda.jit(device=True)
def value(byte, mean, scale):
    return (float32(byte) - mean) * scale


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    j, i = cuda.grid(2)
    if i < out.shape[1] and j < out.shape[2]:
        y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
        a = b = c = float32(0)
        if y >= 0 and y < frame.shape[0] and x >= 0 and x < frame.shape[1]:
            a, b, c = (
                value(frame[y, x, 0], mean[0], scale[0]),
                value(frame[y, x, 1], mean[1], scale[1]),
                value(frame[y, x, 2], mean[2], scale[2]),
            )
        out[0, i, j], out[1, i, j], out[2, i, j] = a, b, c
