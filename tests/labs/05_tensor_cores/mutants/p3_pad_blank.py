# problem: pad
# loses: pad-right, pad-once
# reason: not written yet

from warplab import cuda


@cuda.jit
def pad(a, out):
    """out = a as float16 in the first rows and columns, 0 elsewhere."""
