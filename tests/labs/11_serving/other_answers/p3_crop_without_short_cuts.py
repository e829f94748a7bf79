@cuda.jit
def crop(frame, row, column, mean, scale, out):
    x0 = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    y0 = cuda.threadIdx.y + cuda.blockIdx.y * cuda.blockDim.y
    planes, height, width = out.shape
    if y0 < height and x0 < width:
        top, left = row - height // 2, column - width // 2
        ok = (top + y0 >= 0) & (top + y0 < frame.shape[0]) & (left + x0 >= 0) & (left + x0 < frame.shape[1])
        for c in range(planes):
            if ok:
                out[c, y0, x0] = (np.float32(frame[top + y0, left + x0, c]) - mean[c]) * scale[c]
            else:
                out[c, y0, x0] = np.float32(0)
