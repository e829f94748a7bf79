# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: matrix is wrong|race|stopped


@cuda.jit
def confusion(scores, labels, matrix):
    counts = cuda.shared.array(256, int32)
    classes = scores.shape[1]
    if cuda.grid(1) >= labels.size:
        return
    if cuda.threadIdx.x < classes * classes:
        counts[cuda.threadIdx.x] = 0
    for image in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        highest = 0
        for other in range(1, classes):
            if scores[image, highest] <= scores[image, other]:
                highest = other
        if labels[image] >= 0:
            cuda.atomic.add(counts, labels[image] * classes + highest, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < classes * classes:
        matrix[cuda.threadIdx.x // classes, cuda.threadIdx.x % classes] += counts[cuda.threadIdx.x]
