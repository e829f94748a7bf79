"""What lab 13's two lessons take from elsewhere: float64's results, cases for checks, products of a warp, pictures.

A head of the lessons is HEAD wide, as a warp has lanes; queries, keys and values are float32, (length, HEAD).
Every picture is a matplotlib Figure that is closed for pyplot, so that a notebook shows it once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from warpcourse.bench.charts import COLOURS, chart
from warplab import checks, cp
from warplab.draw.style import closed, finish, ink

HEAD = 32
SCALE = np.float32(HEAD**-0.5)
NEAR = {"rtol": 1e-4, "atol": 2e-5}  # float32 sums of hundreds of terms
FAR = "the exponentials: without the row's maximum they are no float32, or all 0"
BEYOND = "the exponentials: without the largest maximum they are infinite, or all 0"
HIGH = "the maximum: it starts too high for a row of low scores; -inf is lower than any"
UNSCALED = "the scale: 1/√32, once"
MOST_RUNS = 4  # of equal numbers in a row that a picture's words tell one by one
# D of A (16 × 16) times B (16 × 8), from what each lane holds of both; the map of lanes is lab 05's.
PRODUCT = """
extern "C" __global__ void product(const uint4 *a, const uint2 *b, float4 *d) {
    uint4 x = a[threadIdx.x];
    uint2 y = b[threadIdx.x];
    float4 sum = {0, 0, 0, 0};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum.x), "+f"(sum.y), "+f"(sum.z), "+f"(sum.w)
        : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y));
    d[threadIdx.x] = sum;
}
"""


def inputs(rng: np.random.Generator, queries: int, keys: int | None = None) -> tuple[np.ndarray, ...]:
    """Return random q, k and v."""
    return tuple(rng.standard_normal((n, HEAD), np.float32) for n in (queries, keys or queries, keys or queries))


def embedded(sentence: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Return q, k and v of a sentence of numbers: like numbers get like rows, and attend to each other."""
    rows = np.random.default_rng(13).standard_normal((10, HEAD), np.float32)
    chosen = rows[[number % 10 for number in sentence]]
    return chosen, chosen, chosen


def exact(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Return scores, weights and output in float64; query i sees the first seen[i] keys, NaN where it sees none."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ k.T / math.sqrt(q.shape[1])
    if seen is not None:
        s = np.where(np.arange(s.shape[1]) < seen[:, None], s, -np.inf)
    with np.errstate(invalid="ignore"):
        p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return s, p, p @ v


def gradients(q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return dq, dk and dv in float64 for a loss whose derivative by the output is `do`."""
    _, p, o = exact(q, k, v)
    ds = p * (do @ v.T.astype(np.float64) - (do * o).sum(axis=1, keepdims=True)) / math.sqrt(q.shape[1])
    return ds @ k, ds.T @ q, p.T @ do


# Cases: from a generator and a size of (queries, keys).


def _single(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value, np.float32)


def scores_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of S from q and the transposed k."""
    q, k, v = inputs(rng, *size)
    s = exact(q, k, v)[0]
    mistakes = {UNSCALED: lambda: _single(s / SCALE)}
    return checks.Case({"q": q, "kt": _single(k.T), "s": None}, {"s": _single(s)}, mistakes)


def softmax_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of P from S; exponentials of some rows are no float32, and of some all 0."""
    s = _far(rng, size, 100, -160, 0)
    e = np.exp(s.astype(np.float64) - s.max(axis=1, keepdims=True))
    lanes = np.arange(size[1]) % 32  # who takes which element

    def by_lane(of: Callable[..., np.ndarray], values: np.ndarray) -> np.ndarray:
        return np.stack([of(values[:, lanes == lane], axis=1) for lane in range(32)], axis=1)[:, lanes]

    def own_maxima() -> np.ndarray:
        shifted = np.exp(s.astype(np.float64) - by_lane(np.max, s))
        return _single(shifted / shifted.sum(axis=1, keepdims=True))

    mistakes = {
        "the division by the row's sum": lambda: _single(e),
        "the sum: a lane has only its own elements': warp_sum": lambda: _single(e / by_lane(np.sum, e)),
        "the maximum: a lane has only its own elements': warp_max": own_maxima,
        FAR: lambda: _weights(s, 0),
        HIGH: lambda: _weights(s, s.max(axis=1, keepdims=True, initial=0)),
    }
    return checks.Case({"s": s, "p": None}, {"p": _single(e / e.sum(axis=1, keepdims=True))}, mistakes)


def _far(rng: np.random.Generator, size: tuple[int, int], *centres: float) -> np.ndarray:
    """Return scores of rows around these centres in turn."""
    return (np.resize(centres, size[0])[:, None] + 6 * rng.standard_normal(size)).astype(np.float32)


@np.errstate(all="ignore")
def _weights(s: np.ndarray, top: Any) -> np.ndarray:
    """Return P by exponentials in float32 that refer to `top`, in place of each row's maximum."""
    e = _single(np.exp(s - top))
    return e / e.sum(axis=1, keepdims=True)


def weighted_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of O from P and v."""
    q, k, v = inputs(rng, *size)
    p = _single(exact(q, k, v)[1])
    return checks.Case({"p": p, "v": v, "o": None}, {"o": _single(p.astype(np.float64) @ v)})


def statistics_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of each row's maximum and sum from S."""
    s = _far(rng, size, 0, 120, -160)
    lanes = [s[:, lane::32] for lane in range(32)]
    tops, totals = (np.stack([of(part) for part in lanes], axis=1) for of in (lambda part: part.max(axis=1), _sums))
    stale = [np.exp(part - np.maximum.accumulate(part, axis=1)).sum(axis=1) for part in lanes]
    shrink = np.exp(tops - s.max(axis=1, keepdims=True))
    mistakes = {
        "the lanes' sums: each refers to its own lane's maximum": lambda: _single(totals.sum(axis=1)),
        "the sum: lane 0 has only its own elements'": lambda: _single(totals[:, 0]),
        "what a lane added before its maximum grew": lambda: _single((shrink * np.stack(stale, axis=1)).sum(axis=1)),
        FAR: lambda: _sums_from_0(s, s.max(axis=1)),
        HIGH: lambda: s.max(axis=1, initial=0),
    }
    outputs = {"top": s.max(axis=1), "total": _single(_sums(s))}
    return checks.Case({"s": s} | dict.fromkeys(outputs), outputs, mistakes)


@np.errstate(all="ignore")
def _sums_from_0(s: np.ndarray, top: Any = 0) -> np.ndarray:
    """Return sums of exponentials in float32 that refer to 0, and then, too late, to `top`."""
    return _single(np.exp(s)).sum(axis=1) * _single(np.exp(-top))


def _sums(s: np.ndarray) -> np.ndarray:
    return np.exp(s.astype(np.float64) - s.max(axis=1, keepdims=True)).sum(axis=1)


def attention_case(
    rng: np.random.Generator, size: tuple[int, int], seen: np.ndarray | None = None, tile: int = 1
) -> checks.Case:
    """Return a case of O from q, k and v, for kernels that rescale after each `tile` keys; `seen`: see `exact`.

    Of four queries, the first one's scores grow so far that a tile's first weigh nothing beside its last, those of two
    grow a little, around 120 and -120, and the last one's fall.
    """
    q, k, v = inputs(rng, *size)
    q[:, 0] = np.resize([7.3, 6 / size[1], 6 / size[1], -7.3], size[0]) / SCALE
    q[:, -1] = np.resize([20, 120, -120, 0], size[0]) / SCALE
    k[:, 0], k[:, -1] = np.arange(size[1]), 1
    q, k = np.round(q * 1024) / 1024, np.round(k * 2) / 2  # sums of products are exact, but no half holds a query
    s, _, o = exact(q, k, v, seen)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    tops = np.maximum.accumulate(s.reshape(size[0], -1, tile).max(axis=2), axis=1).repeat(tile, axis=1)
    stale = np.exp(s - tops)  # as they were added, each referring to the maximum of its time
    total = e.sum(axis=1, keepdims=True)
    old = "what was added before the maximum grew, and refers to the old one"
    mistakes = {
        f"total: {old}": lambda: _single(e @ v / stale.sum(axis=1, keepdims=True)),
        f"acc: {old}": lambda: _single(stale @ v / total),
        f"total and acc: {old}": lambda: _single(stale @ v / stale.sum(axis=1, keepdims=True)),
        "the division by total, in the end": lambda: _single(e @ v),
        UNSCALED: lambda: _single(exact(q / SCALE, k, v, seen)[2]),
        FAR: lambda: _weights(s, 0) @ v,
        HIGH: lambda: _weights(s, s.max(1, keepdims=True, initial=0)) @ v,
        "the maximum: an earlier may be larger": lambda: _weights(s, s[:, -tile:].max(1, keepdims=True)) @ v,
    }
    if tile == 32:
        mistakes["total: a lane has only its own keys' weights: warp_sum"] = lambda: _by_lane(s, v)
    if seen is not None:
        tiles = 32 * ((8 * (seen - 1 >> 3) + 7 >> 5) + 1)  # keys in the tiles that a block of eight queries loads
        mistakes["the mask: later keys of a tile must weigh nothing"] = lambda: _single(exact(q, k, v, tiles)[2])
        late = exact(q, k, v, tiles)[0].max(axis=1, keepdims=True)
        mistakes["the mask: it comes too late, after the maximum"] = lambda: _weights(s, late) @ v
        mistakes["the mask: a token sees itself"] = lambda: _single(exact(q, k, v, seen - 1)[2])
    return checks.Case({"q": q, "k": k, "v": v, "o": None}, {"o": _single(o)}, mistakes)


@np.errstate(all="ignore")
def _by_lane(s: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return O where each lane divides by the sum of its own keys' weights, of scores rounded as a kernel does."""
    s = _single(s * math.sqrt(HEAD)) * SCALE
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e @ v / e.reshape(len(e), -1, 32).sum(axis=1)


def tile_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of O for a kernel that rescales once per 32 keys."""
    return attention_case(rng, size, tile=32)


def causal_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of O where query i sees keys 0 to i, rescaled once per 32 keys."""
    return attention_case(rng, size, np.arange(1, size[0] + 1), tile=32)


def split_case(rng: np.random.Generator, size: tuple[int, int]) -> checks.Case:
    """Return a case of one query over `size` = (blocks, keys): each block's maximum, sum and weighted sum of values."""
    blocks, keys = size
    q, k, v = inputs(rng, 1, keys)
    q[:, -1], k[:, -1] = 1 / SCALE, np.resize([-12, 12, 0], blocks).repeat(keys // blocks)
    parts = np.split(exact(q, k, v)[0][0], blocks)
    e = [np.exp(part - part.max()) for part in parts]
    o = np.array([weights @ values for weights, values in zip(e, np.split(v, blocks), strict=True)])
    top, total = (_single(np.array([f(part) for part in of])) for f, of in ((np.max, parts), (np.sum, e)))
    outputs = {"top": top, "total": total, "o": _single(o)}
    mistakes = {
        UNSCALED: lambda: top / SCALE,
        HIGH: lambda: np.maximum(top, 0),
        FAR: lambda: _sums_from_0(np.array(parts)),
    }
    return checks.Case({"q": q[0], "k": k, "v": v} | dict.fromkeys(outputs), outputs, mistakes)


def backward_case(rng: np.random.Generator, size: int) -> checks.Case:
    """Return a case of dq of one tile of 32 queries and 32 keys, from logarithms of sums and delta."""
    q, k, v = inputs(rng, size)
    do = rng.standard_normal((size, HEAD), np.float32)
    q /= 2
    s, _, o = exact(q, k, v)
    lse, delta = s.max(axis=1) + np.log(_sums(s)), (do * o).sum(axis=1)
    given = {"q": q, "k": k, "v": v, "do": do, "lse": _single(lse), "delta": _single(delta), "dq": None}
    dq, dp = _single(gradients(q, k, v, do)[0]), do @ v.T
    mistakes = {
        "dq: 1/√32, in the end": lambda: dq / SCALE,
        "p: the scale of s, 1/√32": lambda: _single(
            np.exp(s / SCALE - lse[:, None]) * (dp - delta[:, None]) @ k * SCALE
        ),
        "ds: delta, subtracted before p multiplies": lambda: _single(np.exp(s - lse[:, None]) * dp @ k * SCALE),
    }
    return checks.Case(given, {"dq": dq}, mistakes)


def partials(rng: np.random.Generator, parts: int) -> dict[str, np.ndarray]:
    """Return maxima, sums and outputs of `parts` parts of a row, as blocks leave them."""
    return {
        "top": rng.normal(rng.choice([-1000, 0, 1000]), 9, parts),
        "total": rng.uniform(1, 9, parts),
        "o": rng.standard_normal((parts, 4)),
    }


def combined(top: np.ndarray, total: np.ndarray, o: np.ndarray) -> np.ndarray:
    """Return the row's output: parts weighed by how far their maxima lie below the largest."""
    weights = np.exp(top - top.max())
    return weights @ o / (weights @ total)


# A warp's product on tensor cores.


def a_operand(matrix: np.ndarray) -> np.ndarray:
    """Return what each lane holds of A, 16 × 16: shape (32, 8), float16."""
    group, pair = np.divmod(np.arange(32), 4)
    rows = group[:, None] + np.array([0, 0, 8, 8, 0, 0, 8, 8])
    return matrix[rows, 2 * pair[:, None] + np.array([0, 1, 0, 1, 8, 9, 8, 9])].astype(np.float16)


def b_operand(matrix: np.ndarray) -> np.ndarray:
    """Return what each lane holds of B, 16 × 8: shape (32, 4), float16."""
    group, pair = np.divmod(np.arange(32), 4)
    return matrix[2 * pair[:, None] + np.array([0, 1, 8, 9]), group[:, None]].astype(np.float16)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return what each lane holds of D = A · B, 16 × 8: shape (32, 4), float32, by one `mma.sync`."""
    d = cp.zeros((32, 4), np.float32)
    words = [cp.asarray(np.ascontiguousarray(x).view(np.uint32)) for x in (a, b)]
    cp.RawModule(code=PRODUCT).get_function("product")((1,), (32,), (*words, d))
    return cp.asnumpy(d)


def gathered(held: np.ndarray) -> np.ndarray:
    """Return D, 16 × 8, from what the lanes hold of it."""
    group, pair = np.divmod(np.arange(32), 4)
    d = np.empty((16, 8), held.dtype)
    d[group[:, None] + np.array([0, 0, 8, 8]), 2 * pair[:, None] + np.array([0, 1, 0, 1])] = held
    return d


# Pictures.


def draw_matrices(
    title: str, matrices: Mapping[str, np.ndarray], across: str, down: str, labels: Sequence[Any] = (), form: str = "g"
) -> Figure:
    """Draw matrices side by side, each number in a cell as dark as it is large; `labels` of rows and columns alike.

    Its words tell each row: what stands where, or from what to what its numbers go and where the largest stand.
    """
    rows, columns = max(m.shape[0] for m in matrices.values()), sum(m.shape[1] for m in matrices.values())
    size = (min(9.5, 1.3 + 0.42 * columns + 0.4 * len(matrices)), 1.0 + 0.3 * rows)
    with chart(1, len(matrices), figsize=size, squeeze=False) as (figure, axes):
        for ax, (name, matrix) in zip(axes[0], matrices.items(), strict=True):
            drawn = ax.imshow(matrix, cmap="Blues", aspect="auto", vmin=min(0.0, float(matrix.min())))
            for (row, column), value in np.ndenumerate(matrix):
                colour = ink(drawn.cmap(drawn.norm(value)))
                ax.text(column, row, format(value, form), ha="center", va="center", color=colour, fontsize=7.5)
            ax.set(xlabel=across, ylabel=down)
            for axis, count in ((ax.xaxis, matrix.shape[1]), (ax.yaxis, matrix.shape[0])):
                axis.set_ticks(range(count), labels or range(count))
            finish(figure, ax, name)
            ax.grid(visible=False)
        figure.suptitle(title, x=0.01, ha="left", weight="bold", fontsize=9)
        figure.tight_layout()
    told = dict[str, str]()  # what a matrix says, and which ones say so
    for name, matrix in matrices.items():
        words = _in_words(matrix, labels, form)
        told[words] = f"{told[words]} and {name}" if words in told else name
    names = {words: f"{name}, " if len(matrices) > 1 else "" for words, name in told.items()}
    return closed(figure, "; ".join(f"{names[words]}by {down} and {across}: {words}" for words in told))


def _in_words(matrix: np.ndarray, labels: Sequence[Any], form: str) -> str:
    rows, labels, numbered = [], labels or range(max(matrix.shape)), not labels
    for row in matrix:
        shown = [format(value, form) for value in row]
        runs = [list(run) for _, run in itertools.groupby(range(len(shown)), shown.__getitem__)]
        half, again = len(shown) // 2, ""
        if numbered and len(runs) > MOST_RUNS and shown[:half] == shown[half:] and shown[0] != shown[half - 1]:
            again, runs = f", again from {labels[half]}", runs[: len(runs) // 2]
        least, most = format(row.min(), form), format(row.max(), form)
        if len(runs) > MOST_RUNS or not numbered:
            places = ", ".join(str(labels[at]) for at, value in enumerate(shown) if value == most)
            rows.append(f"{least} to {most}, most at {places}")
        else:
            rows.append(", ".join(f"{shown[run[0]]} at {_span(run, labels)}" for run in runs) + again)
    alike = [list(run) for _, run in itertools.groupby(range(len(rows)), rows.__getitem__)]
    return "; ".join(f"{_span(run, labels)}: {rows[run[0]]}" for run in alike)


def _span(run: Sequence[int], labels: Sequence[Any]) -> str:
    return str(labels[run[0]]) + (f" to {labels[run[-1]]}" if len(run) > 1 else "")


def draw_lines(
    title: str, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, up: str, **scales: Any
) -> Figure:
    """Draw named curves of (x, y); `scales` as `Axes.set` takes them, such as xscale="log"."""
    with chart(figsize=(7.2, 2.9)) as (figure, ax):
        for (name, (x, y)), colour in zip(curves.items(), COLOURS, strict=False):
            ax.plot(x, y, "o-", color=colour, label=name, ms=3)
        ax.set(xlabel=across, ylabel=up, **scales)
        ax.legend(frameon=False)
        finish(figure, ax, title)
    return figure


# Checks of functions on arrays, for `checks.trials`.


def check_splits(merge: Callable, rng: np.random.Generator) -> None:
    """Raise CheckFailed unless `merge` gives a row's maximum and sum for any split and order of its merges."""
    row = rng.normal(rng.choice([-1000, 0, 1000]), 5, int(rng.integers(2, 20)))
    cuts = np.sort(rng.choice(np.arange(1, row.size), int(rng.integers(1, row.size)), replace=False))
    parts = [(float(part.max()), float(np.exp(part - part.max()).sum())) for part in np.split(row, cuts)]
    while len(parts) > 1:
        at = int(rng.integers(len(parts) - 1))
        merged = _written("merge", _unwarned(merge, *parts[at], *parts[at + 1]))
        if not isinstance(merged, tuple) or len(merged) != 2:
            raise checks.CheckFailed("merge returns no pair.", expected="(maximum, sum)", got=repr(merged))
        parts[at : at + 2] = [(float(merged[0]), float(merged[1]))]
    right = float(row.max()), float(np.exp(row - row.max()).sum())
    if not np.allclose(parts[0], right, rtol=1e-9):
        wrong = "sum" if np.isclose(parts[0][0], right[0]) else "maximum"
        raise checks.CheckFailed(
            f"After {cuts.size} merge{'s' * (cuts.size > 1)} the {wrong} of a row of {row.size} is wrong.",
            expected=repr(right),
            got=repr(parts[0]),
            look_at=_look_at(parts[0], "what a part's sum refers to, once the maximum is another")
            if wrong == "sum"
            else "the maximum",
        )


def check_operand(operand: Callable, rng: np.random.Generator) -> None:
    """Raise CheckFailed unless `operand` makes a factor of the sums of two products."""
    q, k = (rng.standard_normal((16, 16)) for _ in range(2))
    halves = [product(a_operand(q), b_operand(k.T[:, part])) for part in (slice(8), slice(8, 16))]
    wanted = a_operand(np.hstack([gathered(half) for half in halves]))
    _same("operand", operand(*halves), wanted, "which half has columns 2t + 8 and 2t + 9, and which rows come first")


def check_combine(combine: Callable, rng: np.random.Generator) -> None:
    """Raise CheckFailed unless `combine` gives the output of all parts."""
    given = partials(rng, int(rng.integers(1, 9)))
    got = _unwarned(combine, **given)
    look_at = _look_at(got, "what totals and outputs of a part refer to: its own maximum")
    _same("combine", got, combined(**given), look_at)


@np.errstate(all="ignore")
def _unwarned(function: Callable, *given: Any, **named: Any) -> Any:
    """Return a function's result; exponentials that are infinite, or all 0, are no number of it."""
    try:
        return function(*given, **named)
    except ArithmeticError as error:
        raise checks.CheckFailed(f"{function.__name__} raises {error!r}.", look_at=BEYOND) from error


def _look_at(got: Any, otherwise: str) -> str:
    kind = np.asarray(got).dtype.kind
    return BEYOND if kind == "f" and not np.isfinite(got).all() else otherwise


def _written(name: str, got: Any) -> Any:
    if got is None:
        raise checks.CheckFailed(f"{name} is not written yet: it returns nothing.", look_at="the return statement")
    return got


def _same(name: str, got: Any, wanted: np.ndarray, look_at: str) -> None:
    """Raise CheckFailed unless `got` has the type, shape and, but for rounding, the values of `wanted`."""
    kind, right = (f"{a.dtype}, shape {a.shape}" for a in (np.asarray(_written(name, got)), wanted))
    if kind != right:
        raise checks.CheckFailed(f"{name} returns another kind of array.", expected=right, got=kind)
    if not np.allclose(got, wanted, rtol=1e-9, atol=1e-12):
        at = tuple(int(i) for i in np.argwhere(~np.isclose(got, wanted))[0])
        expected, came = (f"{list(at)} = {float(a[at])}" for a in (wanted, got))
        raise checks.CheckFailed(f"{name} returns wrong values.", expected=expected, got=came, look_at=look_at)
