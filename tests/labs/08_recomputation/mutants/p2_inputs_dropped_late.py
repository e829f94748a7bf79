# problem: schedule
# loses: schedule-memory
# reason: too many activations are alive


def schedule(layers, plan):
    """Return the steps of forward and backward pass: a list of ("forward" or "backward" or "drop", i)."""
    segments = list(zip(plan, [*plan[1:], layers], strict=True))
    steps = []
    for first, end in segments:
        for i in range(first, end):
            steps.append(("forward", i))
            if end < layers and i > first:
                steps.append(("drop", i))
    for first, end in reversed(segments):
        if end < layers:
            steps += [("forward", i) for i in range(first, end - 1)]
        for i in reversed(range(first, end)):
            steps += [("backward", i), *([("drop", i + 1)] if i + 1 < end else [])]
    return steps
