# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: one thread does too much of the work|instructions|too many


@cuda.jit
def confusion(scores, labels, matrix):
    """matrix[r, c] += images with label r whose highest score is that of class c."""
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    for cell in range(me, classes * classes, cuda.blockDim.x):
        counts[cell] = 0
    cuda.syncthreads()
    for turn in range(32):
        for i in range(cuda.grid(1) if me % 32 == turn else labels.size, labels.size, cuda.gridsize(1)):
            best = 0
            for c in range(1, classes):
                if scores[i, c] > scores[i, best]:
                    best = c
            if labels[i] >= 0:
                cuda.atomic.add(counts, labels[i] * classes + best, 1)
        cuda.syncwarp()
    cuda.syncthreads()
    for cell in range(me, classes * classes, cuda.blockDim.x):
        cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])
