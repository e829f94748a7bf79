# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: bytes written to global memory


@cuda.jit
def confusion(scores, labels, matrix):
    """matrix[r, c] += images with label r whose highest score is that of class c."""
    for i in range(cuda.grid(1), labels.size, cuda.gridsize(1)):
        best = 0
        for c in range(1, scores.shape[1]):
            if scores[i, c] > scores[i, best]:
                best = c
        if labels[i] >= 0:
            cuda.atomic.add(matrix, (labels[i], best), 1)
