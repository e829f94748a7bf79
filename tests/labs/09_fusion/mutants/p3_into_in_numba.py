# problem: into
# loses: into-one, into-any
# reason: wrong language


@cuda.jit
def cbr_into(x, filters, bias, y, n, c, pixels, k, channels, start):
    i = cuda.grid(1)
    if i < n * k * pixels:
        pixel, f, image = i % pixels, i // pixels % k, i // (pixels * k)
        total = bias[f]
        for j in range(c):
            total += x[image, j, pixel] * filters[f, j]
        y[image, start + f, pixel] = max(total, float32(0))
