# problem: kept
# loses: kept-right
# reason: box \d+ (stays|goes)


def kept(masks):
    stay = [0]
    for i in range(1, len(masks)):
        if not int(masks[stay[-1]][i // 32]) >> i % 32 & 1:
            stay.append(i)
    return stay
