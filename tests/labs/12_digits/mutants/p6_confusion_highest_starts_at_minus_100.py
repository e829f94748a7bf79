# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: matrix is wrong


@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    for cell in range(me, classes * classes, cuda.blockDim.x):
        counts[cell] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        best, highest = 0, float32(-100)
        for c in range(classes):
            score = scores[i, c]
            if score > highest:
                best, highest = c, score
        label = labels[i]
        if label >= 0:
            cuda.atomic.add(counts, label * classes + best, 1)
    cuda.syncthreads()
    for cell in range(me, classes * classes, cuda.blockDim.x):
        cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])
