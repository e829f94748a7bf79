# problem: siblings
# loses: siblings-plain, siblings-any
# reason: merge_siblings: not written yet


def merge_siblings(graph):
    """Return the graph with each family of cbr nodes that may be one as one."""
