# problem: scaling
# loses: scaling-update, scaling-grow
# reason: weight \d is wrong in


def scaled_step(weights, gradients, scale, good, interval, rate):
    """Return new weights, the next scale and the new count of good steps; gradients are float16, `scale` times true."""
    if not all(np.isfinite(gradient).all() for gradient in gradients):
        return list(weights), max(1.0, scale / 2), 0
    factor = np.float32(rate / scale / scale)
    weights = [w - factor * gradient.astype(np.float32) for w, gradient in zip(weights, gradients, strict=True)]
    good += 1
    return (weights, 2 * scale, 0) if good == interval else (weights, scale, good)
