# problem: stuck
# loses: stuck-right
# reason: a list or tuple of


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    for rank in range(len(waits)):
        path = [rank]
        while waits[path[-1]] is not None and waits[path[-1]] not in path:
            path.append(waits[path[-1]])
        if waits[path[-1]] is not None:
            return sorted(path)
    return []
