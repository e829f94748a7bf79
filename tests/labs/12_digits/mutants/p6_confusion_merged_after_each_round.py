# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: one thread does too much of the work


@cuda.jit
def confusion(scores, labels, matrix):
    """matrix[r, c] += images with label r whose highest score is that of class c."""
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    for first in range(cuda.blockIdx.x * cuda.blockDim.x, labels.size, cuda.gridsize(1)):
        for cell in range(me, classes * classes, cuda.blockDim.x):
            counts[cell] = 0
        cuda.syncthreads()
        i = first + me
        if i < labels.size:
            best = 0
            for c in range(1, classes):
                if scores[i, c] > scores[i, best]:
                    best = c
            if labels[i] >= 0:
                cuda.atomic.add(counts, labels[i] * classes + best, 1)
        cuda.syncthreads()
        for cell in range(me, classes * classes, cuda.blockDim.x):
            cuda.atomic.add(matrix, (cell // classes, cell % classes), counts[cell])
        cuda.syncthreads()
