# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: bytes written to global memory


@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    for cell in range(me, classes * classes, cuda.blockDim.x):
        counts[cell] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        best = 0
        for c in range(1, classes):
            if scores[i, c] > scores[i, best]:
                best = c
        if labels[i] >= 0:
            cuda.atomic.add(counts, labels[i] * classes + best, 1)
    cuda.syncthreads()
    if me < 32:
        for cell in range(me, classes * classes, 32):
            cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])
