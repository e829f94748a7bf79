# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: already carries slice 0


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    first = ring.index(root)
    order = ring[first:] + ring[:first]
    return [
        (part + hop, order[hop % len(order)], order[(hop + 1) % len(order)], part)
        for hop in range(3)
        for part in range(slices)
    ]
