# problem: schedule
# loses: schedule-right, schedule-work, schedule-memory
# reason: schedule is not written yet


def schedule(layers, plan):
    """Return the steps of forward and backward pass: a list of ("forward" or "backward" or "drop", i)."""
