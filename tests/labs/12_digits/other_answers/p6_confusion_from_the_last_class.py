@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array(256, int32)
    classes = scores.shape[1]
    cells = classes * classes
    for cell in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        counts[cell] = 0
    cuda.syncthreads()
    start, threads = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, cuda.gridDim.x * cuda.blockDim.x
    for i in range(start, labels.size, threads):
        best = classes - 1
        for c in range(classes - 2, -1, -1):
            if scores[i, c] >= scores[i, best]:
                best = c
        if labels[i] >= 0:
            cuda.atomic.add(counts, labels[i] * classes + best, 1)
    cuda.syncthreads()
    for cell in range(cuda.threadIdx.x, cells, cuda.blockDim.x):
        cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])
