# problem: choose
# loses: choose-network
# reason: choose returns another network


def parameters(layers, image):
    """Return the number of weights and biases."""
    return sum(weights for _, weights, _ in _layers(layers, image))


def latency(layers, image, batch, card):
    """Return the estimated µs for a batch: launches, and for each layer its arithmetic or its memory."""
    total = 0.0
    for operations, weights, moved in _layers(layers, image):
        computing = batch * operations / (card["tflops"] * 1e6)
        moving = 4 * (batch * moved + weights) / (card["gb_per_second"] * 1e3)
        total += card["launch_us"] + max(computing, moving)
    return total


def choose(candidates, image, card, microseconds, floor):
    """Return the name of the best network that keeps both limits; None if none does."""
    found = []
    for candidate in candidates:
        tested = candidate["tested"] + 4
        accuracy = (candidate["right"] + 2) / tested
        bound = accuracy - 2 * math.sqrt(accuracy * (1 - accuracy) / tested)
        time = latency(candidate["layers"], image, 1, card)
        if time <= microseconds and bound >= floor:
            found.append((-bound, time, candidate["name"]))
    return max(found)[2] if found else None


def _layers(layers, image):
    """The operations for an image, the weights, and the numbers read and written for an image, of each layer."""
    height, width, channels = image
    for kind, *sizes in layers:
        read = height * width * channels
        if kind == "conv":
            filters, size, stride = sizes
            height, width, weights = -(-height // stride), -(-width // stride), filters * size * size * channels
            operations, channels, biases = 2 * weights * height * width, filters, filters
        elif kind == "pool":
            height, width, weights, biases = height // sizes[0], width // sizes[0], 0, 0
            operations = height * width * channels * sizes[0] ** 2
        elif kind == "mean":
            height = width = 1
            operations, weights, biases = read, 0, 0
        else:
            height, width, channels = 1, 1, sizes[0]
            weights, biases = read * channels, channels
            operations = 2 * weights
        yield operations, weights + biases, read + height * width * channels
