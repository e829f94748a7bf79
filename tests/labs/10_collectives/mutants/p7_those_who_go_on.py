# problem: stuck
# loses: stuck-right
# reason: a list or tuple of


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    found = []
    for rank in range(len(waits)):
        at = rank
        for _ in waits:
            at = waits[at] if at is not None else None
        if at is None:
            found.append(rank)
    return found
