@cuda.jit(device=True)
def between(at, size, cells):
    place = (float32(at) + float32(0.5)) * (float32(cells) / float32(size)) - float32(0.5)
    return max(float32(0), min(place, float32(cells - 1)))


@cuda.jit
def overlay(image, heat, strength, out):
    j, i = cuda.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        y, x = between(i, image.shape[0], heat.shape[0]), between(j, image.shape[1], heat.shape[1])
        top, left = int(y), int(x)
        bottom = top + 1 if top + 1 < heat.shape[0] else top
        right = left + 1 if left + 1 < heat.shape[1] else left
        down, across = y - float32(top), x - float32(left)
        near = heat[top, left] * (float32(1) - down) + heat[bottom, left] * down
        far = heat[top, right] * (float32(1) - down) + heat[bottom, right] * down
        a = strength * (near * (float32(1) - across) + far * across)
        grey = float32(image[i, j])
        out[0, i, j] = grey + a * (float32(255) - grey)
        out[1, i, j] = out[2, i, j] = grey - a * grey
