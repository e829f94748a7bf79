# problem: accumulate
# loses: accumulate-tokens, accumulate-half, accumulate-clip
# reason: the result of accumulate is wrong in


def accumulate(parts):
    """Return the gradient of the mean loss over all tokens of all micro-batches, float32."""
    sum(part["tokens"] for part in parts)
    shares = [part["gradient"].astype(np.float32) * np.float32(1) for part in parts if part["tokens"]]
    return sum(shares[1:], start=shares[0])


def clipped(parts, most):
    """Return what accumulate does, shortened to the norm `most` if it is longer; float32."""
    gradient = accumulate(parts)
    norm = float(np.sqrt(np.sum(gradient.astype(np.float64) ** 2)))
    return gradient * np.float32(most / norm) if norm > most else gradient
