# problem: kept
# loses: kept-right
# reason: kept is not written yet


def kept(masks):
    """Return the numbers of the boxes that stay, a list of ints; masks: (count, words) uint32."""
