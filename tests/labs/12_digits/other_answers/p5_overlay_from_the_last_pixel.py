@cuda.jit(device=True)
def lies(pixel, pixels, cells):
    at = (float32(2 * pixel + 1) * float32(cells) / float32(pixels) - float32(1)) * float32(0.5)
    at = min(max(at, float32(0)), float32(cells - 1))
    first = min(int32(math.floor(at)), max(cells - 2, 0))
    return first, at - float32(first)


@cuda.jit
def overlay(image, heat, strength, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x >= width or y >= height:
        return
    x, y = width - 1 - x, height - 1 - y
    top, down = lies(y, height, heat.shape[0])
    left, across = lies(x, width, heat.shape[1])
    v = float32(0)
    for row in range(2):
        for column in range(2):
            part = (down if row else float32(1) - down) * (across if column else float32(1) - across)
            v += part * heat[min(top + row, heat.shape[0] - 1), min(left + column, heat.shape[1] - 1)]
    a, grey = strength * v, float32(image[y, x])
    dark = grey - a * grey
    out[2, y, x] = dark
    out[1, y, x] = dark
    out[0, y, x] = dark + a * float32(255)
