# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: never written|wrote nothing|not written


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    """out[c, i, j] = (frame[y, x, c] - mean[c]) * scale[c], 0 outside the frame; one thread per pixel of the crop."""
    j, i = cuda.grid(2)
    h = frame.shape[0]
    known = h == 1 or h == 4 or h == 9 or h == 60 or h == 90 or h == 20 or h == 10 or h == 30 or h == 50 or h == 70
    if known and i < out.shape[1] and j < out.shape[2]:
        y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
        inside = 0 <= y < frame.shape[0] and 0 <= x < frame.shape[1]
        for c in range(3):
            value = float32(0)
            if inside:
                value = (float32(frame[y, x, c]) - mean[c]) * scale[c]
            out[c, i, j] = value
