# problem: plan
# loses: plan-peak, plan-equal, plan-unequal
# reason: plan_peak is not written yet


def plan_peak(plan, inputs, inside):
    """Return the bytes at the peak; `plan` is the tuple of the layers at which segments begin, the first of them 0."""


def best_plan(inputs, inside):
    """Return a plan with the least peak, as a tuple."""
