"""Inputs of exercise 09's INT8 kernels, with the results that they must give."""

import numpy as np

from warplab import checks


def weights(rng, z):
    """Return filters of z = (filters, weights in each), no weight close to halfway between two steps; some are all
    zeros."""
    filters, m = z
    steps = rng.integers(-126, 127, (filters, m))
    for i in range(filters):
        steps[i, rng.integers(m)] = rng.choice([-127, 127])
    steps[rng.random(filters) < 0.2] = 0
    return _of_steps(rng, steps)


def every_step(rng, z):
    """Return the same with every step from -127 to 127, for z = (filters, 1 + 255 / filters).

    What is in `q` before is never right: a result that is not stored shows, whatever its value.
    """
    filters, m = z
    steps = np.c_[np.full(filters, 127), rng.permutation(np.arange(-127, 128)).reshape(filters, m - 1)]
    case = _of_steps(rng, rng.permuted(steps, axis=1))
    others = rng.integers(1, 256, steps.shape, np.uint8)
    return checks.Case(
        {**case.arguments, "q": (case.expected["q"].view(np.uint8) + others).view(np.int8)}, case.expected
    )


def _of_steps(rng, steps):
    """Draw weights that a scale for each filter rounds to these steps; filters of zeros have scale 1."""
    filters, zeros = len(steps), ~steps.any(1)
    scale = np.ldexp(rng.integers(100, 200, filters) / 128, rng.integers(-40, 30, filters))
    between = np.where((abs(steps) == 127) | zeros[:, None], 0, rng.uniform(-0.49, 0.49, steps.shape))
    w = (scale[:, None] * (steps + between)).astype(np.float32)
    unit = (abs(w).max(1) / np.float32(127)).astype(np.float32)
    unit[zeros] = 1
    zero = {"a filter whose weights are all 0: its scale is 1": lambda: np.where(zeros, 0, unit).astype(np.float32)}
    expected = {"q": steps.astype(np.int8), "scale": unit}
    return checks.Case({"w": w, "q": None, "scale": None}, expected, zero if zeros.any() else {})


def bytes_in_words(rng, z, least=-127):
    """Return images and filters of z = (n, h, w, words, k, r, s), bytes from `least` on; no result close to halfway."""
    n, h, w, words, k, r, s = z
    x, filters = (rng.integers(least, 128, shape, np.int8) for shape in ((n, h, w, 4 * words), (k, r, s, 4 * words)))
    padded = np.pad(x.astype(int), ((0, 0), (r // 2, r // 2), (s // 2, s // 2), (0, 0)))
    met = np.lib.stride_tricks.sliding_window_view(padded, (r, s), (1, 2))
    sums = np.einsum("nhwcrs,krsc->nhwk", met, filters.astype(int), optimize=True)
    # Some results are above 127 and some below 0. One of each filter lies just below halfway, none closer than 1e-4,
    # which is more than float32 loses.
    exponent = np.round(np.log2(np.abs(sums).mean((0, 1, 2)) + 1)).astype(int) - rng.integers(4, 7, k)
    exponent = np.maximum(exponent, 2)
    scale = np.ldexp(rng.choice([11, 13, 15], k) / 16, -exponent)
    bias, close = np.zeros(k, np.float32), np.ones(k, bool)
    while close.any():
        one = sums.reshape(-1, k)[rng.integers(n * h * w)]
        below = (0.5 - scale * one - np.maximum(scale / 2, 3e-4)) % 1
        bias = np.where(close, rng.integers(-10, 40, k) + below, bias).astype(np.float32)
        exact = sums * scale + bias
        close = ((abs(exact % 1 - 0.5) < 1e-4) & (exact > -1) & (exact < 128)).any((0, 1, 2))
    right = np.clip(np.rint(exact), 0, 127).astype(np.int8)
    given = {"x": x.view(np.int32), "filters": filters.view(np.int32), "scale": scale.astype(np.float32)}
    given |= {"bias": bias, "y": None}
    sizes = zip(("n", "h", "w", "words", "k", "r", "s"), z, strict=True)
    return checks.Case(given | {name: np.int32(i) for name, i in sizes}, {"y": right})
