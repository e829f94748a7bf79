"""A small decoder on NumPy, of random weights, whose keys and values lie in the blocks that `grow` deals out.

    model = Decoder(memory, prompts(requests, seed=11))
    made = generate(requests, engine, memory, grow, model=model)
    model.texts, made.throughput        # prompts with what was generated; tokens per second

Its tokens mean nothing. What it does with them is what a large one does: a step is one product of matrices for all who
run, and each looks up the keys and values of its own tokens, block by block. So a block that `grow` gives to two, or
does not give, changes tokens.

Source: Vaswani and others, Attention Is All You Need, NeurIPS 2017: softmax of q · k / √d over all tokens so far.
"""

import time
from collections.abc import Sequence

import numpy as np

from kernels.serving.serve.batching.tokens import Memory, Request

LAYERS, HEADS, WIDTH, VOCABULARY, LONGEST = 2, 4, 64, 97, 512


def prompts(requests: Sequence[Request], seed: int) -> list[list[int]]:
    """Draw the tokens of each request's prompt."""
    rng = np.random.default_rng(seed)
    return [rng.integers(VOCABULARY, size=request.prompt).tolist() for request in requests]


class Decoder:
    """Continues prompts, each with the likeliest token. `texts`: they, with what was generated.

    `memory`: what its cache has room for. `seed`: of the weights.
    """

    def __init__(self, memory: Memory, prompts: Sequence[Sequence[int]], seed: int = 2017) -> None:
        rng = np.random.default_rng(seed)
        shapes = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
        self.layers = [[rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes] for _ in range(LAYERS)]
        self.tokens, self.places = rng.normal(size=(VOCABULARY, WIDTH)), rng.normal(size=(LONGEST, WIDTH))
        self.head = rng.normal(size=(WIDTH, VOCABULARY))
        # Not a number where nothing was written: nobody reads there unnoticed.
        self._cache = np.full((LAYERS, 2, memory.blocks, memory.size, WIDTH), np.nan)
        self._size, self.texts, self._cached = memory.size, [list(one) for one in prompts], [0] * len(prompts)

    def __call__(self, running: Sequence[int], held: Sequence[Sequence[int]], joined: Sequence[int]) -> float:
        """Give each running request its next token; return the seconds that it took.

        `held`: the blocks of each request. `joined`: those whose text is not in the cache, or no longer.
        """
        begin = time.perf_counter()
        for number in joined:
            self._cached[number] = 0
        likeliest = {}
        while part := [number for number in running if self._cached[number] < len(self.texts[number])]:
            scores = self._read(part, held)
            likeliest |= dict(zip(part, scores.argmax(axis=1).tolist(), strict=True))
        for number, token in likeliest.items():
            self.texts[number].append(token)
        return time.perf_counter() - begin

    def _read(self, part: Sequence[int], held: Sequence[Sequence[int]]) -> np.ndarray:
        """Read the next token of each request of `part`; return scores of what may follow, (requests, VOCABULARY)."""
        at = np.array([self._cached[number] for number in part])
        table = np.zeros((len(part), at.max() // self._size + 1), int)  # of blocks, a row for each request
        for row, number, i in zip(table, part, at, strict=True):
            mine = held[number][: i // self._size + 1]
            row[: len(mine)] = mine
        seen = np.arange(table.shape[1] * self._size) <= at[:, None]
        here = table[np.arange(len(part)), at // self._size], at % self._size
        x = self.tokens[[self.texts[number][i] for number, i in zip(part, at, strict=True)]] + self.places[at]
        for (keys, values), (qkv, out, up, down) in zip(self._cache, self.layers, strict=True):
            q, keys[here], values[here] = np.split(normed(x) @ qkv, 3, axis=1)
            x = x + attended(q, *(each[table].reshape(len(part), -1, WIDTH) for each in (keys, values)), seen) @ out
            x = x + np.maximum(normed(x) @ up, 0) @ down
        for number in part:
            self._cached[number] += 1
        return normed(x) @ self.head


def normed(x: np.ndarray) -> np.ndarray:
    """Return rows of mean 0 and variance 1."""
    x = x - x.mean(axis=-1, keepdims=True)
    return x / x.std(axis=-1, keepdims=True)


def attended(q: np.ndarray, keys: np.ndarray, values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return what a token of each request gets from those before it. `q`: (requests, WIDTH). `keys`, `values`:
    (requests, n, WIDTH). `seen`: (requests, n), which of them it has. Each row of WIDTH is cut into heads."""
    keys, values = (np.where(seen[..., None], each, 0).reshape(*each.shape[:2], HEADS, -1) for each in (keys, values))
    q = q.reshape(len(q), HEADS, -1)
    scores = np.einsum("rhd,rnhd->rhn", q, keys) / np.sqrt(q.shape[-1])
    weights = np.exp(np.where(seen[:, None], scores - scores.max(axis=-1, keepdims=True), -np.inf))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("rhn,rnhd->rhd", weights, values).reshape(len(q), -1)
