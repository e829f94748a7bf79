# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: one thread does too much of the work


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    """out[c, i, j] = (frame[y, x, c] - mean[c]) * scale[c], 0 outside the frame; one thread per pixel of the crop."""
    first, mine = cuda.grid(2)
    if first % 2:
        return
    for i in range(mine, min(mine + 1, out.shape[1])):
        for j in range(first, min(first + 2, out.shape[2])):
            y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
            inside = 0 <= y < frame.shape[0] and 0 <= x < frame.shape[1]
            for c in range(3):
                value = float32(0)
                if inside:
                    value = (float32(frame[y, x, c]) - mean[c]) * scale[c]
                out[c, i, j] = value
