# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: one thread does too much of the work


@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    for cell in range(me, classes * classes, cuda.blockDim.x):
        counts[cell] = 0
    cuda.syncthreads()
    first = cuda.grid(1)
    if first // 32 % 2 == 0:
        for i in range(first, labels.size, cuda.gridsize(1)):
            best, highest = 0, -math.inf
            for c in range(classes):
                score = scores[i, c]
                if score > highest:
                    best, highest = c, score
            label = labels[i]
            if label >= 0:
                cuda.atomic.add(counts, label * classes + best, 1)
        for i in range(first + 32, labels.size, cuda.gridsize(1)):
            best, highest = 0, -math.inf
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
