# problem: cbr
# loses: cbr-chain, cbr-branch, cbr-norm
# reason: conv is left in the graph


def fuse_cbr(graph):
    """Return the graph with each conv, and what may follow it, as one cbr."""
    return graph
