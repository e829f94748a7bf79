# problem: kept
# loses: kept-right
# reason: box 1 goes


def kept(masks):
    """Return the numbers of the boxes that stay, a list of ints; masks: (count, words) uint32."""
    stay, gone = [], 0
    for i, row in enumerate(masks):
        if True:
            stay.append(i)
            gone |= sum(int(word) << 32 * number for number, word in enumerate(row))
    return stay
