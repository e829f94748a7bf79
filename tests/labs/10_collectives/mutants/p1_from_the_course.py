# problem: slices
# loses: slices-time, slices-best, slices-predicted
# reason: name 'broadcast_time' is not defined

import kernels.collectives.model as model


def broadcast_time(ranks, slices, size, gbs, alpha):
    return model.ring_broadcast_seconds(ranks, size * 2**20, model.Link(alpha * 1e-6, gbs * 1e9), slices) * 1e6
