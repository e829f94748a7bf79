# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: name 'broadcast' is not defined

import importlib


def broadcast(ring, slices, root):
    course = importlib.import_module("kernels.collectives.ring")
    sends = course.ring_broadcast(len(ring), slices, root=root, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice) for send in sends]
