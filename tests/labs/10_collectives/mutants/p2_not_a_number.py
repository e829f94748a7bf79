# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: message 0 is not one


def broadcast(ring, slices, root):
    first = ring.index(root)
    order = ring[first:] + ring[:first]
    steps = float("nan")
    return [(steps, order[hop], order[hop + 1], part) for hop in range(len(order) - 1) for part in range(slices)]
