# problem: stuck
# loses: stuck-right
# reason: wrong type


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    found = 0
    for rank in range(len(waits)):
        at = rank
        for _ in waits:
            at = waits[at] if at is not None else None
        found += at is not None
    return found
