# problem: threshold
# loses: threshold-whole, threshold-clipped, threshold-best
# reason: divergence is not written yet|divergence returns nothing


def divergence(histogram, bins, levels):
    """Return the divergence of the clipped and coarse histogram from the clipped one; `histogram`: array of counts."""


def threshold(histogram, width, levels):
    """Return where to clip: (i + 0.5) · width for the number i of bins with the smallest divergence."""
