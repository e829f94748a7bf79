@cuda.jit
def overlay(image, heat, strength, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x >= width or y >= height:
        return
    rows, columns = heat.shape
    v = (float32(2 * y + 1) * float32(rows)) / float32(2 * height) - float32(0.5)
    u = (float32(2 * x + 1) * float32(columns)) / float32(2 * width) - float32(0.5)
    v0, u0 = int32(math.floor(v)), int32(math.floor(u))
    f, g = v - float32(v0), u - float32(u0)
    v1, u1 = min(v0 + 1, rows - 1), min(u0 + 1, columns - 1)
    v0, u0 = max(v0, 0), max(u0, 0)
    one = float32(1)
    warm = (one - f) * (one - g) * heat[v0, u0] + (one - f) * g * heat[v0, u1]
    warm += f * (one - g) * heat[v1, u0] + f * g * heat[v1, u1]
    shade = float32(image[y, x])
    part = warm * strength
    for plane in range(3):
        out[plane, y, x] = shade * (one - part) + (float32(255) * part if plane == 0 else float32(0))
