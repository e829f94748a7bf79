# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: is a Python function, which runs on the host


def crop(frame, row, column, mean, scale, out):
    for c in range(3):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
                inside = 0 <= y < frame.shape[0] and 0 <= x < frame.shape[1]
                out[c, i, j] = (frame[y, x, c] - mean[c]) * scale[c] if inside else 0
