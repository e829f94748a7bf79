# problem: quantise
# loses: quantise-short, quantise-any, quantise-counted
# reason: quantise is not written yet


@cuda.jit
def quantise(w, q, scale):
    """q = w / scale, rounded, with a scale for each filter; a block of 128 threads per filter."""
