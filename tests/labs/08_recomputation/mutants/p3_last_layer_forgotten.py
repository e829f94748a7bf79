# problem: plan
# loses: plan-unequal
# reason: best_plan is not the best


def plan_peak(plan, inputs, inside):
    """Return the bytes at the peak; `plan` is the tuple of the layers at which segments begin, the first of them 0."""
    kept, most = 0, 0
    for first, end in zip(plan, [*plan[1:], len(inputs)], strict=True):
        kept += inputs[first]
        most = max(most, kept + sum(inside[first:end]))
    return most


def best_plan(inputs, inside):
    """Return a plan with the least peak, as a tuple."""
    layers = len(inputs)
    least, following = [0] * (layers + 1), [layers] * layers
    for i in reversed(range(layers)):
        found, total = [], 0
        for end in range(i + 1, max(i + 2, layers)):
            total += inside[end - 1]
            found.append((inputs[i] + max(total, least[end]), end))
        least[i], following[i] = min(found)
    plan = [0]
    while following[plan[-1]] < layers:
        plan.append(following[plan[-1]])
    return tuple(plan)
