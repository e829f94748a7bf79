# problem: overlay
# loses: overlay-same, overlay-any, overlay-counted
# reason: kernel


def overlay(image, heat, strength, out):
    out[:] = image
