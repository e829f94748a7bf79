@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array((16, 16), int32)
    classes, step = scores.shape[1], cuda.blockDim.x
    cell = cuda.threadIdx.x
    while cell < 256:
        counts[cell // 16, cell % 16] = 0
        cell += step
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < labels.size:
        label = labels[i]
        if label >= 0:
            best, highest = 0, scores[i, 0]
            for c in range(1, classes):
                score = scores[i, c]
                if score > highest:
                    best, highest = c, score
            cuda.atomic.add(counts, (label, best), 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    for cell in range(cuda.threadIdx.x, classes * classes, step):
        row, column = cell // classes, cell % classes
        if counts[row, column]:
            cuda.atomic.add(matrix, (row, column), counts[row, column])
