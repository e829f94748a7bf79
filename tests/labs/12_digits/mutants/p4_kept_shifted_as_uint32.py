# problem: kept
# loses: kept-right
# reason: box \d+ (stays|goes)|kept raises


def kept(masks):
    """Return the numbers of the boxes that stay, a list of ints; masks: (count, words) uint32."""
    stay, gone = [], 0
    for i, row in enumerate(masks):
        if not gone >> i & 1:
            stay.append(i)
            gone |= sum(int(np.uint32(word) << np.uint32(32 * number % 32)) for number, word in enumerate(row))
    return stay
