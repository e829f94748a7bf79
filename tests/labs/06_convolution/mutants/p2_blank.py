# problem: direct
# loses: direct-plain, direct-any, direct-work
# reason: not written yet: its body is empty

from warplab import cuda


@cuda.jit
def direct(x, w, y, padding, stride):
    """y = x convolved with w, NCHW; beyond the border of an image is its nearest pixel."""
