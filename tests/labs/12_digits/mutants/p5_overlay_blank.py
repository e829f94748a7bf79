# problem: overlay
# loses: overlay-same, overlay-any, overlay-counted
# reason: overlay is not written yet


@cuda.jit
def overlay(image, heat, strength, out):
    """out: three planes of the image, with heat over it in red; one thread per pixel."""
