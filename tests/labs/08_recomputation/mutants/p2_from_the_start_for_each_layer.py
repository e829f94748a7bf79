# problem: schedule
# loses: schedule-work, schedule-memory
# reason: too many layers run


def schedule(layers, plan):
    """Return the steps of forward and backward pass: a list of ("forward" or "backward" or "drop", i)."""
    segments = list(zip(plan, [*plan[1:], layers], strict=True))
    steps = []
    for first, end in segments:
        for i in range(first, end):
            steps.append(("forward", i))
            if i > first:
                steps.append(("drop", i))
    for first, end in reversed(segments):
        for i in reversed(range(first, end)):
            steps += [("forward", k) for k in range(first, i)]
            steps += [("drop", k) for k in range(first + 1, i)]
            steps += [("backward", i)]
    return steps
