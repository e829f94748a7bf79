# problem: sums
# loses: sums-scatter, sums-gather, sums-reduce
# reason: name 'reduce_scatter' is not defined

from kernels.collectives.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter


def reduce_scatter(ring, slices):
    sends = ring_reduce_scatter(len(ring), slices, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice) for send in sends]


def all_gather(ring, slices):
    sends = ring_all_gather(len(ring), slices, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice) for send in sends]


def all_reduce(ring, slices):
    sends = ring_all_reduce(len(ring), slices, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice, send.reduce) for send in sends]
