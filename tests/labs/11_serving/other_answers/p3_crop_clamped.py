@cuda.jit
def crop(frame, row, column, mean, scale, out):
    j, i = cuda.grid(2)
    rows, columns = out.shape[1], out.shape[2]
    if i >= rows or j >= columns:
        return
    y = row - rows // 2 + i
    x = column - columns // 2 + j
    yy = min(max(y, 0), frame.shape[0] - 1)
    xx = min(max(x, 0), frame.shape[1] - 1)
    keep = float32(1.0) if y == yy and x == xx else float32(0.0)
    for c in range(3):
        out[c, i, j] = keep * (float32(frame[yy, xx, c]) - mean[c]) * scale[c]
