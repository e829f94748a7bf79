# problem: grey
# loses: grey-sectors, grey-traffic
# reason: too many sectors per load request(.|\n)*at most 4(.|\n)*got +12


from warplab import cuda

BLOCK = 128
FLOATS = 3 * BLOCK


@cuda.jit
def grey(pixels, out):
    i = cuda.grid(1)
    if i < out.size:
        red, green, blue = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        out[i] = (2 * red + 5 * green + blue) / 8
