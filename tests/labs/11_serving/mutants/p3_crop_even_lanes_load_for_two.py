# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: too many barriers|one thread does too much


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    kept = cuda.shared.array((1024, 3), float32)
    j, i = cuda.grid(2)
    me = cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x
    y, x = row - out.shape[1] // 2 + i, column - out.shape[2] // 2 + j
    if me % 2 == 0:
        for k in range(2):
            inside = (
                0 <= y < frame.shape[0] and 0 <= x + k < frame.shape[1] and i < out.shape[1] and j + k < out.shape[2]
            )
            for c in range(3):
                if inside:
                    kept[me + k, c] = (float32(frame[y, x + k, c]) - mean[c]) * scale[c]
                else:
                    kept[me + k, c] = 0
    cuda.syncthreads()
    if i < out.shape[1] and j < out.shape[2]:
        for c in range(3):
            out[c, i, j] = kept[me, c]
