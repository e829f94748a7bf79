@cuda.jit
def crop(frame, row, column, mean, scale, out):
    j, i = cuda.grid(2)
    if i < out.shape[1] and j < out.shape[2]:
        y = i + row - out.shape[1] // 2
        x = j + column - out.shape[2] // 2
        red, green, blue = float32(0.0), float32(0.0), float32(0.0)
        if y >= 0 and y < frame.shape[0] and x >= 0 and x < frame.shape[1]:
            red = (np.float32(frame[y, x, 0]) - mean[0]) * scale[0]
            green = (np.float32(frame[y, x, 1]) - mean[1]) * scale[1]
            blue = (np.float32(frame[y, x, 2]) - mean[2]) * scale[2]
        out[0, i, j] = red
        out[1, i, j] = green
        out[2, i, j] = blue
