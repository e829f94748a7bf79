# problem: threshold
# loses: threshold-clipped, threshold-best
# reason: expected inf|another threshold is better|divergence


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
        return 0.0
    p, q = p[full] / p.sum(), q[full] / q.sum()
    return float(np.sum(p * np.log(p / q)))


def threshold(histogram, width, levels):
    """Return where to clip: (i + 0.5) · width for the number i of bins with the smallest divergence."""
    best = min(range(levels, len(histogram) + 1), key=lambda bins: divergence(histogram, bins, levels))
    return (best + 0.5) * width
