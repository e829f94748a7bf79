# problem: concats
# loses: concats-plain, concats-any
# reason: concat is left in the graph


def remove_concats(graph):
    """Return the graph without each concat that can go."""
    return graph
