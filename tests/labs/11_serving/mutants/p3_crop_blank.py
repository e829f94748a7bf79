# problem: crop
# loses: crop-inside, crop-border, crop-counted
# reason: crop is not written yet


@cuda.jit
def crop(frame, row, column, mean, scale, out):
    """out[c, i, j] = (frame[y, x, c] - mean[c]) * scale[c], 0 outside the frame; one thread per pixel of the crop."""
