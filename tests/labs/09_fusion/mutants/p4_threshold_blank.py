# problem: threshold
# loses: threshold-whole, threshold-clipped, threshold-best
# reason: divergence is not written yet|divergence returns nothing


def divergence(histogram, bins, levels):
    """Return the divergence of the clipped and coarse histogram from the clipped one; `histogram`: array of counts."""
