# problem: overlay
# loses: overlay-same, overlay-any, overlay-counted
# reason: stopped by the simulator|overlay: out is wrong|in out


@cuda.jit
def overlay(image, heat, strength, out):
    """out: three planes of the image, with heat over it in red; one thread per pixel."""
    i, j = cuda.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        half = float32(0.5)
        y = (float32(i) + half) * float32(heat.shape[0]) / float32(image.shape[0]) - half
        x = (float32(j) + half) * float32(heat.shape[1]) / float32(image.shape[1]) - half
        y = min(max(y, float32(0)), float32(heat.shape[0] - 1))
        x = min(max(x, float32(0)), float32(heat.shape[1] - 1))
        top, left = int32(y), int32(x)
        bottom, right = min(top + 1, heat.shape[0] - 1), min(left + 1, heat.shape[1] - 1)
        down, across = y - float32(top), x - float32(left)
        upper = heat[top, left] + across * (heat[top, right] - heat[top, left])
        lower = heat[bottom, left] + across * (heat[bottom, right] - heat[bottom, left])
        a = strength * (upper + down * (lower - upper))
        grey = float32(image[i, j])
        out[0, i, j] = grey + a * (float32(255) - grey)
        out[1, i, j] = grey * (float32(1) - a)
        out[2, i, j] = grey * (float32(1) - a)
