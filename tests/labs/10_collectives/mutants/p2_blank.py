# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: not written yet


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
