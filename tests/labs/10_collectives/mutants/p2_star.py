# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: no link from rank 0 to rank 2


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    first = ring.index(root)
    order = ring[first:] + ring[:first]
    return [
        (part * (len(ring) - 1) + i, root, rank, part) for part in range(slices) for i, rank in enumerate(order[1:])
    ]
