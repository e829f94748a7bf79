# problem: kept
# loses: kept-right
# reason: box 0 stays


def kept(masks):
    """Return the numbers of the boxes that stay, a list of ints; masks: (count, words) uint32."""
    stay, gone = [], 0
    for i, row in enumerate(masks):
        if not gone >> i & 1:
            stay.append(i)
            gone |= sum(int(word) << 32 * number for number, word in enumerate(row))
    return [i for i in range(len(masks)) if i not in stay]
