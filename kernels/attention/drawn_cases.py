"""Inputs of exercise 13 and their attention in float64: what its checks hold a learner's kernels to.

Scores are exact in float32, in whatever order their products are added, so that only the exponentials and the sums
behind them round.
"""

import math

import numpy as np

from warplab import checks

NEAR = {"rtol": 1e-5, "atol": 1e-4}  # of results around 1, with exponentials and sums in float32
PLAIN, FAR, MIXED = "plain", "far", "mixed"
NO_NUMBER = (
    "what is infinite or 0: no result is a number, as after inf - inf or 0 / 0. Where does it become infinite, where 0?"
)


def queries_keys(rng, n, m, d, kind=PLAIN, shift=None):
    """Draw float32 queries (n, d) and keys (m, d).

    Of the two factors of a product one has 12 bits, too many for a half or a bfloat16, the other 4; and one of them is
    out of a half's range. `kind`, of the scores over √d: PLAIN, a few units; FAR, all of a row far above or far below
    0, where an exponential is infinite or 0; MIXED, far above 0 in one half of a row and far below in the other, so
    that the maxima of tiles rise or fall that far. `shift`: the scale of q, a power of two, by default one that a half
    cannot hold.
    """
    most = np.where(rng.integers(0, 2, d), 4095, 8)
    q, k = rng.integers(-most, most + 1, (n, d)), rng.integers(most - 4103, 4104 - most, (m, d))
    if kind != PLAIN:
        moved = rng.permutation(d)[: d // 2]
        q[:, moved] = most[moved] * _signs(rng, n)
        k[:, moved] = (4103 - most[moved]) * (np.where(np.arange(m) < m // 2, -1, 1)[:, None] if kind == MIXED else 1)
    unit, shift = 2.0 ** (-12 if kind == PLAIN else -8), shift or 2.0 ** int(rng.choice([-30, 20]))
    return (q * shift).astype(np.float32), (k * (unit / shift)).astype(np.float32)


def _signs(rng, count):
    return rng.permuted(np.resize([-1, 1], count))[:, None]


def values(rng, *shape):
    """Draw float32 numbers of around 1, with all their bits."""
    return rng.normal(size=shape).astype(np.float32)


def seen_by(n, m):
    """Return which of m keys each of the last n queries sees, as (n, m): none that comes after it."""
    return np.arange(m) <= np.arange(n)[:, None] + m - n


def scores(q, k, seen=True):
    """Return the scores (n, m) in float64, over √d, -inf where a query does not see a key."""
    return np.where(seen, q.astype(float) @ k.T.astype(float) / math.sqrt(q.shape[1]), -np.inf)


def softmax(s):
    """Return the softmax of each row, 0 where a row is -inf throughout, and the logarithm of the row's sum."""
    largest = s.max(axis=1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(np.isinf(largest), 0, largest))
    total = p.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return p / np.where(total == 0, 1, total), (largest + np.log(total))[:, 0]


def attention_case(rng, q, k, /, seen=True, tile=16, with_lse=False, **stored):
    """Return the case of a kernel with q, k, v, o and, `with_lse`, lse, the logarithms of the rows' sums.

    `seen`: (n, m), which keys a query sees. `tile`: the keys between two looks at the maximum, by which the mistakes of
    learners are known. `stored`: how the kernel gets an argument, and further ones.
    """
    s, v = scores(q, k, seen), values(rng, *k.shape)
    p, lse = softmax(s)
    expected = {"o": _float32(p @ v.astype(float))} | ({"lse": _float32(lse)} if with_lse else {})
    arguments = {"q": q, "k": k, "v": v} | dict.fromkeys(expected) | stored
    return checks.Case(arguments, expected, _known_mistakes(q, s, v, tile) | _known_masks(q, k, v, seen, tile))


def _float32(x):
    return np.asarray(x).astype(np.float32)


def _known_mistakes(q, s, v, tile):
    """Map where to look to what the output then is. `s`: the scores, float64."""
    blind = np.isinf(s).all(axis=1, keepdims=True)

    def unshifted():
        p = np.exp(_float32(s))
        return (p @ v) / p.sum(axis=1, keepdims=True)

    found = {
        "the running sum and the output from before the maximum grew: neither is rescaled": (True, True),
        "the output from before the maximum grew: only the running sum is rescaled": (False, True),
        "the running sum from before the maximum grew: only the output is rescaled": (True, False),
    }
    known = {
        "rows that see no key: there -inf minus -inf, or 0 / 0, is no number. Their output is 0": lambda: np.where(
            blind, np.nan, softmax(s)[0] @ v
        )
    }
    known |= {text: _quietly(_by_tiles, s, v, tile, *forgotten) for text, forgotten in found.items()}
    known[
        "the exponentials: that of a large score is infinite, and those of a row of low ones are all 0. Subtract the "
        "row's maximum first"
    ] = _quietly(unshifted)
    known["rows whose scores all lie far below 0: does their maximum start at 0?"] = _quietly(
        lambda: np.where(np.exp(_float32(s)).any(axis=1, keepdims=True), softmax(s)[0] @ v, np.nan)
    )
    first = s[:, :tile].max(axis=1, keepdims=True)
    known["the maximum: is it the first tile's alone? A later tile may hold a score far above it"] = _quietly(
        lambda: np.exp(_float32(s - first)) @ v / np.exp(_float32(s - first)).sum(axis=1, keepdims=True)
    )
    known["the scores: they are not divided by √d"] = lambda: softmax(s * math.sqrt(q.shape[1]))[0] @ v
    known[NO_NUMBER] = lambda: np.full((len(s), v.shape[1]), np.nan)
    return known


def _known_masks(q, k, v, seen, tile):
    """Map what is wrong with a causal mask to what the output then is."""
    if seen is True:
        return {}
    n, m = seen.shape
    ahead = np.arange(m) - np.arange(n)[:, None] - (m - n)  # places from a query to a key
    last = np.minimum(n, (np.arange(n) // tile + 1) * tile) - 1  # query of a block
    read = np.arange(m) // tile * tile <= (last + m - n)[:, None]
    masks = {
        "the mask: is there one?": ahead < m,
        "the mask: is it too strict by one? A query sees itself": ahead < 0,
        "the mask: does it let one key more through?": (ahead <= 1) & read,
        "the mask: the queries are the last of the text, not the first": ahead <= n - m,
    }
    return {text: _quietly(lambda mask=mask: softmax(scores(q, k, mask))[0] @ v) for text, mask in masks.items()}


def _quietly(function, *arguments):
    def run():
        with np.errstate(all="ignore"):
            return _float32(function(*arguments))

    return run


def _by_tiles(s, v, tile, sum_forgotten, output_forgotten):
    """Return the output of a loop over tiles of keys that rescales not what is forgotten."""
    largest, total, out = np.full((len(s), 1), -np.inf), np.zeros((len(s), 1)), np.zeros((len(s), v.shape[1]))
    for start in range(0, s.shape[1], tile):
        part = s[:, start : start + tile]
        before, largest = largest, np.maximum(largest, part.max(axis=1, keepdims=True))
        p, factor = np.exp(part - largest), np.exp(before - largest)
        total = total * (1 if sum_forgotten else factor) + p.sum(axis=1, keepdims=True)
        out = out * (1 if output_forgotten else factor) + p @ v[start : start + tile].astype(float)
    return out / total


def log_sum_case(far=False):
    """Return the maker of cases of rows of scores: near 0, or `far` from it, with some and with all left out."""

    def make_case(rng, size):
        x = values(rng, *size)
        if far:
            x += 200 * rng.permuted(np.resize([-1.1, 0, 1], size[0]))[:, None].astype(np.float32)
            x[rng.random(size) < 0.3] = -np.inf
            x[rng.permutation(size[0])[: size[0] // 3]] = -np.inf
        right = _float32(softmax(x.astype(float))[1])
        known = {
            "the exponentials: that of a large score is infinite, and those of a row of low ones are all 0. Subtract "
            "the largest score first": _quietly(lambda: np.log(np.exp(x).sum(axis=1))),
            "rows in which no pair counts, whose result is -inf: -inf minus -inf is no number": lambda: np.where(
                np.isinf(right), np.nan, right
            ),
            "a thread's sum from before a larger score came: it is not rescaled": _quietly(_by_threads, x, True, False),
            "the pairs of two threads: their sums are added, but not rescaled to one maximum first": _quietly(
                _by_threads, x, False, True
            ),
            "the result: is the largest score added to the logarithm of the sum?": _quietly(
                lambda: right - np.max(x, axis=1)
            ),
        }
        return checks.Case({"x": x, "out": None}, {"out": right}, known)

    return make_case


def _by_threads(x, sum_forgotten, pairs_forgotten, threads=64):
    """Return the logarithms of the rows' sums, from a maximum and a sum for each thread, without what is forgotten."""
    steps = -(-x.shape[1] // threads)
    x = np.pad(x.astype(float), ((0, 0), (0, steps * threads - x.shape[1])), constant_values=-np.inf)
    x = x.reshape(len(x), steps, threads)
    running, most = np.maximum.accumulate(x, axis=1), x.max(axis=1)
    sums = np.nan_to_num(np.exp(x - (running if sum_forgotten else most[:, None]))).sum(axis=1)
    top = most.max(axis=1, keepdims=True)
    return np.log((sums * (1 if pairs_forgotten else np.nan_to_num(np.exp(most - top)))).sum(axis=1)) + top[:, 0]


def decode_lengths(batch, most):
    """Return how many keys each sequence has: from none to `most`; one alone has all."""
    return np.linspace(most, 0 if batch > 1 else most, batch).astype(np.int32)


def decode_case(kind):
    """Return the maker of cases of parts of keys, for a size of (batch, most keys, parts)."""

    def make_case(rng, size):
        batch, most, parts = size
        lengths, d = decode_lengths(batch, most), 32
        q, k = np.empty((batch, d), np.float32), np.full((batch, most, d), np.nan, np.float32)
        v, o, lse = k.copy(), np.zeros((batch, parts, d)), np.full((batch, parts), -np.inf)
        for b, length in enumerate(lengths):
            q[b : b + 1], k[b, :length] = queries_keys(rng, 1, int(length), d, kind, shift=1.0)
            q[b] /= 8
            v[b, :length] = values(rng, length, d)
            each = -(-int(length) // parts)
            for part in range(parts):
                own = slice(min(part * each, length), min((part + 1) * each, length))
                p, sums = softmax(q[b : b + 1].astype(float) @ k[b, own].T.astype(float))
                o[b, part], lse[b, part] = (p @ v[b, own].astype(float))[0], sums[0]
        arguments = {"q": q, "k": k, "v": v, "lengths": lengths, "o": None, "lse": None}
        expected = {"o": _float32(o), "lse": _float32(lse)}
        empty = np.isinf(lse)
        known = {
            "empty parts: there -inf minus -inf, or 0 / 0, is no number. Their output is 0": lambda: np.where(
                empty[..., None], np.nan, expected["o"]
            )
        }
        return checks.Case(arguments, expected, known)

    return make_case


def combine_case(far):
    """Return the maker of cases of parts to combine, for a size of (batch, parts); `far`: sums far from 1, and none."""

    def make_case(rng, size):
        batch, parts = size
        o, lse = values(rng, batch, parts, 32), 2 * values(rng, batch, parts)
        if far:
            lse += 150 * rng.permuted(np.resize([-1, 1], batch))[:, None].astype(np.float32)
            empty = rng.random(size) < 0.3
            empty[rng.permutation(batch)[: batch // 3]] = True
            lse[empty], o[empty] = -np.inf, 0
        weights, none = softmax(lse.astype(float))[0], np.isinf(lse).all(axis=1, keepdims=True)

        def by(weights):
            return _float32(np.einsum("bp,bpd->bd", weights, o.astype(float)))

        known = {
            "the weights of the parts: a plain mean counts a part of few keys like one of many": lambda: by(
                np.full(size, 1 / parts)
            ),
            "the exponentials: that of a large lse is infinite, and those of low ones are all 0. Subtract the largest "
            "lse first": _quietly(lambda: by(np.where(none, 0, np.exp(lse) / np.exp(lse).sum(axis=1, keepdims=True)))),
            "the weights: they are not divided by their sum": _quietly(
                lambda: by(weights * np.exp(lse - lse.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
            ),
            "sequences without keys: there -inf minus -inf, or 0 / 0, is no number. Their output is 0": lambda: by(
                np.where(none, np.nan, weights)
            ),
        }
        return checks.Case({"o": o, "lse": lse, "out": None}, {"out": by(weights)}, known)

    return make_case


def backward_case(far=False):
    """Return the maker of cases of one tile's backward pass, for a size of (batch, queries, keys).

    `far`: of scores far from 0, with queries that see no key.
    """

    def make_case(rng, size):
        batch, n, m = size
        kind, shift = (FAR, 2.0**-4) if far else (PLAIN, 2.0**-6)
        tiles = [queries_keys(rng, n, m, 16, kind, shift) for _ in range(batch)]
        q, k = map(np.stack, zip(*tiles, strict=True))
        v, do, delta = values(rng, batch, m, 16), values(rng, batch, n, 16), values(rng, batch, n)
        of_tile = np.stack([softmax(scores(*both))[1] for both in zip(q, k, strict=True)])
        lse = _float32(of_tile + np.abs(rng.normal(size=(batch, n))))  # of more keys than the tile's
        if far:
            lse[rng.random((batch, n)) < 0.2] = -np.inf
        given = {"q": q, "k": k, "v": v, "do": do, "lse": lse, "delta": delta}
        expected = _derivatives(**given)

        def by(**changed):
            return _quietly(lambda: _derivatives(**given | changed)["dq"])

        known = {
            "ds: is delta subtracted before p multiplies it?": by(delta=0 * delta),
            "ds: is delta subtracted, and not added?": by(delta=-delta),
            "p: is the lse of the whole row used? The tile has only a part of its keys": by(lse=of_tile),
            "dq: 1 / √d is left out": lambda: 4 * expected["dq"],
            "queries that see no key, whose lse is -inf: they add nothing": lambda: np.where(
                np.isinf(lse)[..., None], np.nan, expected["dq"]
            ),
            NO_NUMBER: lambda: np.nan * expected["dq"],
        }
        return checks.Case(given | dict.fromkeys(expected), expected, known)

    return make_case


def _derivatives(q, k, v, do, lse, delta):
    """Return dq, dk and dv, float32, of tiles of a batch."""
    q, k, v, do = (x.astype(float) for x in (q, k, v, do))
    s = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    with np.errstate(over="ignore"):
        p = np.where(np.isinf(lse)[..., None], 0, np.exp(np.minimum(s - lse[..., None], 700)))
    ds = p * (do @ v.swapaxes(1, 2) - delta[..., None]) / math.sqrt(q.shape[2])
    return {"dq": _float32(ds @ k), "dk": _float32(ds.swapaxes(1, 2) @ q), "dv": _float32(p.swapaxes(1, 2) @ do)}
