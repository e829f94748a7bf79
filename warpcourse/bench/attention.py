"""Attention below the labs: its definition in NumPy and float64, and the kernels that a lab offers to the others.

No lab imports another. A lab that computes attention asks for `on_this_machine()`: on a GPU kernels, if a lab offers
them, else the definition; both do the same. What has kernels is held to the definition.

q: (batch, heads, length, size); k and v: (batch, heads of k, length of k, size). Query heads come in groups that share
a head of keys and values: heads is a multiple of heads of k. Causal: the last query sees all keys, the one before it
all but the last, and so on, also where there are more keys than queries, as in a cache ("aligned bottom right", as
FlashAttention 2.1 has it). A query that sees no key gives zeros, and -inf as the logarithm of its sum.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from warpcourse.bench.lab import offered
from warplab.hardware import backend


class Attention(NamedTuple):
    """A way to compute attention: `forward` and `decode` do what this module's do, given arrays that `array` makes of
    NumPy's; `host` makes NumPy's of theirs. `sizes`: of heads, that both take; () for any."""

    forward: Callable[..., tuple[Any, Any]]
    decode: Callable[..., tuple[Any, Any]]
    array: Callable[[np.ndarray], Any]
    host: Callable[[Any], np.ndarray]
    sizes: tuple[int, ...] = ()


class Gradients(NamedTuple):
    """Gradients of q, k and v, each of its shape."""

    dq: np.ndarray
    dk: np.ndarray
    dv: np.ndarray


def seen(queries: int, keys: int, causal: bool) -> np.ndarray:
    """Return which of `keys` each query sees, boolean (queries, keys)."""
    if not causal:
        return np.ones((queries, keys), bool)
    return np.arange(keys) <= np.arange(queries)[:, None] + keys - queries


def for_each_query_head(x: np.ndarray, heads: int) -> np.ndarray:
    """Return keys or values in float64, each head repeated for the query heads that share it."""
    return np.repeat(x.astype(np.float64), heads // x.shape[1], axis=1)


def scores(q: np.ndarray, k: np.ndarray, causal: bool = False, scale: float | None = None) -> np.ndarray:
    """Return scale * q kᵀ, by default 1 / sqrt(size), and -inf for keys that a query does not see."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    found = scale * (q.astype(np.float64) @ for_each_query_head(k, q.shape[1]).swapaxes(-1, -2))
    return np.where(seen(q.shape[2], k.shape[2], causal), found, -np.inf)


def log_sums(s: np.ndarray) -> np.ndarray:
    """Return the logarithm of the sum of exp of each row of scores; -inf for a row of -inf alone."""
    largest = s.max(-1, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(s - shift[..., None]).sum(-1))


def weights(s: np.ndarray) -> np.ndarray:
    """Return softmax of each row of scores; zeros for a row of -inf alone."""
    sums = log_sums(s)
    return np.exp(s - np.where(np.isfinite(sums), sums, 0)[..., None])


def forward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return softmax(scale * q kᵀ) v, of q's shape, and the logarithm of each row's sum, (batch, heads, length)."""
    s = scores(q, k, causal, scale)
    return weights(s) @ for_each_query_head(v, q.shape[1]), log_sums(s)


def decode(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, lengths: np.ndarray, table: np.ndarray, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `forward` gives for one query of each head, (batch, heads, size), from a paged cache.

    `k`, `v`: pages, (pages, heads of k, page, size). `table`: (batch, most pages), the pages of each sequence in their
    order; `lengths`: (batch,), its keys. What lies beyond them does not matter.
    """
    batch, heads, size = q.shape
    seen = np.arange(table.shape[1] * k.shape[2]) < lengths[:, None]
    keys, values = (x[table].swapaxes(1, 2).reshape(batch, k.shape[1], -1, size) for x in (k, v))
    keys, values = (np.where(seen[:, None, :, None], x, 0) for x in (keys, values))
    s = np.where(seen[:, None, None], scores(q[:, :, None], keys, scale=scale), -np.inf)
    return (weights(s) @ for_each_query_head(values, heads))[:, :, 0], log_sums(s)[:, :, 0]


def backward(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray, causal: bool = False, scale: float | None = None
) -> Gradients:
    """Return the gradients where `do` is that of the output."""
    heads, scale = q.shape[1], q.shape[-1] ** -0.5 if scale is None else scale
    wide = {name: for_each_query_head(x, heads) for name, x in (("q", q), ("k", k), ("v", v), ("do", do))}
    p = weights(scores(q, k, causal, scale))
    dp = wide["do"] @ wide["v"].swapaxes(-1, -2)
    ds = scale * p * (dp - (dp * p).sum(-1, keepdims=True))
    return Gradients(
        ds @ wide["k"],
        over_groups(ds.swapaxes(-1, -2) @ wide["q"], k.shape[1]),
        over_groups(p.swapaxes(-1, -2) @ wide["do"], k.shape[1]),
    )


def over_groups(gradient: np.ndarray, heads: int) -> np.ndarray:
    """Return the sum over the query heads that share each of `heads`."""
    batch, every, *shape = gradient.shape
    return gradient.reshape(batch, heads, every // heads, *shape).sum(2)


DEFINITION = Attention(forward, decode, np.asarray, np.asarray)


def by_kernels() -> Attention | None:
    """Return the kernels that a lab offers, of float16, on the active backend; None where no lab does."""
    return offered("ATTENTION")


def on_this_machine() -> Attention:
    """Return kernels on a GPU; in the simulator, where they take thousands of times as long, the definition."""
    return (by_kernels() if backend.name() == "gpu" else None) or DEFINITION
