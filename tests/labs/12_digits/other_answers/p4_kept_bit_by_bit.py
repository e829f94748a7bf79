def kept(masks):
    """Return the numbers of the boxes that stay, a list of ints; masks: (count, words) uint32."""
    gone = set()
    for i in range(len(masks)):
        if i not in gone:
            gone |= {j for j in range(len(masks)) if int(masks[i, j // 32]) >> (j % 32) & 1}
    return [i for i in range(len(masks)) if i not in gone]
