# problem: threshold
# loses: threshold-best
# reason: threshold returns the wrong value


def divergence(histogram, bins, levels):
    """Return the divergence of the clipped and coarse histogram from the clipped one; `histogram`: array of counts."""
    kept = np.asarray(histogram[:bins], float)
    p = kept.copy()
    p[-1] += np.sum(histogram[bins:])
    group = np.arange(bins) * levels // bins
    full = kept > 0
    if not full.any():
        return math.inf
    sums = np.bincount(group, kept, levels)
    shares = np.bincount(group, full, levels)
    q = np.where(full, sums[group] / np.maximum(shares[group], 1), 0)
    if np.any((p > 0) & (q == 0)):
        return math.inf
    p, q = p[full] / p.sum(), q[full] / q.sum()
    return float(np.sum(p * np.log(p / q)))


def threshold(histogram, width, levels):
    """Return where to clip: (i + 0.5) · width for the number i of bins with the smallest divergence."""
    best, step = levels, max(1, len(histogram) // 8)
    while step:
        near = [b for b in range(best - 4 * step, best + 4 * step + 1, step) if levels <= b <= len(histogram)]
        best = min(near, key=lambda bins: divergence(histogram, bins, levels))
        step //= 2
    return (best + 0.5) * width
