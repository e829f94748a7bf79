# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: returns the wrong type


def broadcast(ring, slices, root):
    first = ring.index(root)
    order = ring[first:] + ring[:first]
    return ((part + hop, order[hop], order[hop + 1], part) for hop in range(len(order) - 1) for part in range(slices))
