# problem: stuck
# loses: stuck-right
# reason: is wrong|a list or tuple


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    path = [0]
    while waits[path[-1]] is not None and waits[path[-1]] not in path:
        path.append(waits[path[-1]])
    found = path if waits[path[-1]] is not None else []
    for rank in range(len(waits)):
        at = rank
        for _ in waits:
            at = waits[at] if at is not None else None
        if at is not None and rank not in found:
            found.append(rank)
    return found
