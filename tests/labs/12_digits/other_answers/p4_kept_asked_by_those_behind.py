def kept(masks):
    count = len(masks)
    driven = [[(int(masks[i][j // 32]) >> (j % 32)) & 1 for j in range(count)] for i in range(count)]
    found = ()
    for j in range(count):
        if not any(driven[i][j] for i in found):
            found += (np.int64(j),)
    return found
