def kept(masks):
    """Return the numbers of the boxes that stay, a list of ints; masks: (count, words) uint32."""
    gone = np.zeros(masks.shape[1], np.uint32)
    stay = []
    for i in range(len(masks)):
        if not gone[i // 32] & np.uint32(1 << i % 32):
            gone |= masks[i]
            stay.append(np.int64(i))
    return tuple(stay)
