# problem: schedule
# loses: schedule-work, schedule-memory
# reason: too many|not there


def schedule(layers, plan):
    """Return the steps of forward and backward pass: a list of ("forward" or "backward" or "drop", i)."""
    size = max(1, round(layers**0.5))
    plan = tuple(range(0, layers, size))
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
            steps += [("backward", i), ("drop", i + 1)]
    return steps
