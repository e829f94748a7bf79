# problem: confusion
# loses: confusion-one, confusion-any, confusion-counted
# reason: kernel


def confusion(scores, labels, matrix):
    np.add.at(matrix, (labels, scores.argmax(axis=1)), 1)
