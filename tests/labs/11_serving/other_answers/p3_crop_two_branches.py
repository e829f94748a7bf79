@cuda.jit
def crop(frame, row, column, mean, scale, out):
    x = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    y = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    _, rows, columns = out.shape
    if y >= rows or x >= columns:
        return
    up = row - rows // 2 + y
    left = column - columns // 2 + x
    if up < 0 or left < 0 or up >= frame.shape[0] or left >= frame.shape[1]:
        for c in range(3):
            out[c, y, x] = 0
    else:
        for c in range(3):
            out[c, y, x] = float32(frame[up, left, c]) * scale[c] - mean[c] * scale[c]
