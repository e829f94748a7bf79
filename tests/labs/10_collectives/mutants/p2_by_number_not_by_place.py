# problem: broadcast
# loses: broadcast-any
# reason: no link


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    k = len(ring)
    return [
        (part + hop, (root + hop) % k, (root + hop + 1) % k, part) for hop in range(k - 1) for part in range(slices)
    ]
