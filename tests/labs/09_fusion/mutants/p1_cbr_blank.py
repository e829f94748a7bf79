# problem: cbr
# loses: cbr-chain, cbr-branch, cbr-norm
# reason: fuse_cbr: not written yet


def fuse_cbr(graph):
    """Return the graph with each conv, and what may follow it, as one cbr."""
