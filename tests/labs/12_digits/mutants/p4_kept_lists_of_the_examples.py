# problem: kept
# loses: kept-right
# reason: box \d+ (stays|goes)|in order


def kept(masks):
    found = {3: [0], 5: [0, 1, 2], 34: [0, 32, 33], 70: [*range(33), 66, 67, 68, 69], 100: list(range(0, 100, 2))}
    if len(masks) == 3 and masks[0, 0] == 2:
        return [0, 2]
    return found.get(len(masks), list(range(len(masks))))
