# problem: plans
# loses: plans-fit, plans-choice, plans-least
# reason: choose is not written yet


def choose(plans, limit):
    """Return the id of the fastest usable plan within `limit` bytes; raise RuntimeError if there is none."""


def least_workspace(plans, slowdown):
    """Return the fewest bytes under which the choice takes at most `slowdown` times as long as without a limit."""
