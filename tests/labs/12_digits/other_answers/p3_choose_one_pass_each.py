def parameters(layers, image):
    """Return the number of weights and biases."""
    total, shape = 0, image
    for layer in layers:
        shape, weights, biases, _ = one_layer(layer, shape)
        total += weights + biases
    return total


def one_layer(layer, shape):
    """The shape after a layer, its weights, biases and operations."""
    h, w, c = shape
    match layer:
        case ("conv", filters, size, stride):
            after = (math.ceil(h / stride), math.ceil(w / stride), filters)
            weights = filters * size**2 * c
            return after, weights, filters, 2 * weights * after[0] * after[1]
        case ("pool", size):
            after = (h // size, w // size, c)
            return after, 0, 0, math.prod(after) * size * size
        case ("mean",):
            return (1, 1, c), 0, 0, h * w * c
        case ("dense", units):
            return (1, 1, units), h * w * c * units, units, 2 * h * w * c * units


def latency(layers, image, batch, card):
    """Return the estimated µs for a batch: launches, and for each layer its arithmetic or its memory."""
    seconds, shape = 0.0, image
    for layer in layers:
        after, weights, biases, operations = one_layer(layer, shape)
        nbytes = 4 * batch * (np.prod(shape) + np.prod(after)) + 4 * (weights + biases)
        seconds += max(operations * batch / (1e12 * card["tflops"]), nbytes / (1e9 * card["gb_per_second"]))
        shape = after
    return seconds * 1e6 + len(layers) * card["launch_us"]


def choose(candidates, image, card, microseconds, floor):
    """Return the name of the best network that keeps both limits; None if none does."""
    best = None
    for c in candidates:
        n = c["tested"] + 4
        p = (c["right"] + 2) / n
        row = (p - 2 * (p * (1 - p) / n) ** 0.5, latency(c["layers"], image, 1, card), c["name"])
        if row[0] < floor or row[1] > microseconds:
            continue
        if best is None or row[0] > best[0] or (row[0] == best[0] and row[1] < best[1]):
            best = row
    return best and best[2]
