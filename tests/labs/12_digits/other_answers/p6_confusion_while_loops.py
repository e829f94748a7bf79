@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    for cell in range(me, classes * classes, cuda.blockDim.x):
        counts[cell] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    while i < labels.size:
        label = labels[i]
        if label >= 0:
            highest, best = scores[i, 0], 0
            for c in range(1, classes):
                if highest < scores[i, c]:
                    highest, best = scores[i, c], c
            cuda.atomic.add(counts, classes * label + best, 1)
        i += cuda.gridsize(1)
    cuda.syncthreads()
    for cell in range(me, classes * classes, cuda.blockDim.x):
        cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])
