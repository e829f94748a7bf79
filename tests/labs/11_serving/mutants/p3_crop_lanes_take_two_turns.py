# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: too many global|too many warp|efficiency


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    """out[c, i, j] = (frame[y, x, c] - mean[c]) * scale[c], 0 outside the frame; one thread per pixel of the crop."""
    j, i = cuda.grid(2)
    if i < out.shape[1] and j < out.shape[2]:
        y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
        inside = 0 <= y < frame.shape[0] and 0 <= x < frame.shape[1]
        for turn in range(2):
            if turn == cuda.laneid % 2:
                for c in range(3):
                    value = float32(0)
                    if inside:
                        value = (float32(frame[y, x, c]) - mean[c]) * scale[c]
                    out[c, i, j] = value
