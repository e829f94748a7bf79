# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: matrix is wrong|race|stopped


@cuda.jit
def confusion(scores, labels, matrix):
    """matrix[r, c] += images with label r whose highest score is that of class c."""
    counts = cuda.shared.array(256, int32)
    classes, me = scores.shape[1], cuda.threadIdx.x
    if cuda.grid(1) >= labels.size:
        return
    if me < classes * classes:
        counts[me] = 0
    for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        best = 0
        for c in range(1, classes):
            if scores[i, c] >= scores[i, best]:
                best = c
        if labels[i] >= 0:
            cuda.atomic.add(counts, labels[i] * classes + best, 1)
    cuda.syncthreads()
    if me < classes * classes:
        matrix[me // classes, me % classes] += counts[me]
