# problem: concats
# loses: concats-plain, concats-any
# reason: remove_concats: not written yet


def remove_concats(graph):
    """Return the graph without each concat that can go."""
