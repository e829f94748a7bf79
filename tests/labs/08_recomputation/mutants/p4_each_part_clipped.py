# problem: accumulate
# loses: accumulate-clip
# reason: the result of clipped is wrong in


def accumulate(parts):
    """Return the gradient of the mean loss over all tokens of all micro-batches, float32."""
    tokens = sum(part["tokens"] for part in parts)
    shares = [
        part["gradient"].astype(np.float32) * np.float32(part["tokens"] / tokens) for part in parts if part["tokens"]
    ]
    return sum(shares[1:], start=shares[0])


def clipped(parts, most):
    """Return what accumulate does, shortened to the norm `most` if it is longer; float32."""
    norms = [max(1.0, float(np.linalg.norm(p["gradient"])) / most) for p in parts if p["tokens"]]
    kept = [p for p in parts if p["tokens"]]
    parts = [p | {"gradient": p["gradient"] / np.float32(n)} for p, n in zip(kept, norms, strict=True)]
    gradient = accumulate(parts)
    norm = float(np.sqrt(np.sum(gradient.astype(np.float64) ** 2)))
    return gradient * np.float32(most / norm) if norm > most else gradient
