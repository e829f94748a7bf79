"""A small decoder of random weights, whose keys and values lie in the blocks that `grow` deals out.

    model = Decoder(memory, prompts(requests, seed=11))
    made = generate(requests, engine, memory, grow, model=model)
    model.texts, made.throughput        # prompts with what was generated; tokens per second

Its tokens mean nothing. What it does with them is what a large one does: a text is read at once when it joins
(*prefill*); then a step is one product of matrices for all who run, and each looks up the keys and values of its own
tokens, block by block (*decode*). So a block that `grow` gives to two, or does not give, changes tokens.

Attention is `warpcourse.bench.attention`'s: on a GPU by kernels, whose pages are the blocks, in float16; in the
simulator its definition. All else is NumPy.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernels.serving.serve.batching.tokens import Memory, Request
from warpcourse.bench.attention import Attention, on_this_machine

LAYERS, HEADS, WIDTH, VOCABULARY, LONGEST = 2, 2, 64, 97, 512


def prompts(requests: Sequence[Request], seed: int) -> list[list[int]]:
    """Draw the tokens of each request's prompt."""
    rng = np.random.default_rng(seed)
    return [rng.integers(VOCABULARY, size=request.prompt).tolist() for request in requests]


class Decoder:
    """Continues prompts, each with the likeliest token. `texts`: they, with what was generated.

    `memory`: what its cache has room for. `seed`: of the weights. `attention`: None for the best on this machine;
    kernels take blocks of a multiple of 16 tokens.
    """

    def __init__(
        self,
        memory: Memory,
        prompts: Sequence[Sequence[int]],
        seed: int = 2017,
        attention: Attention | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        shapes = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
        self.layers = [[rng.normal(size=shape) / np.sqrt(shape[0]) for shape in shapes] for _ in range(LAYERS)]
        self.tokens, self.places = rng.normal(size=(VOCABULARY, WIDTH)), rng.normal(size=(LONGEST, WIDTH))
        self.head = rng.normal(size=(WIDTH, VOCABULARY))
        self.attention, self._size, self.texts = attention or on_this_machine(), memory.size, [*map(list, prompts)]
        # Not a number where nothing was written: nobody reads there unnoticed.
        empty = np.full((memory.blocks, HEADS, memory.size, WIDTH // HEADS), np.nan)
        self._cache = [[self.attention.array(empty.copy()) for _ in range(2)] for _ in range(LAYERS)]

    def __call__(self, running: Sequence[int], held: Sequence[Sequence[int]], joined: Sequence[int]) -> float:
        """Give each running request its next token; return the seconds that it took.

        `held`: the blocks of each request. `joined`: those whose text is not in the cache, or no longer.
        """
        begin = time.perf_counter()
        scores = {number: self._prefill(number, held[number]) for number in joined}
        if others := [number for number in running if number not in scores]:
            scores |= zip(others, self._decode(others, held), strict=True)
        for number, of_tokens in scores.items():
            self.texts[number].append(int(of_tokens.argmax()))
        return time.perf_counter() - begin

    def _prefill(self, number: int, blocks: Sequence[int]) -> np.ndarray:
        """Read a whole text; return scores of what may follow, (VOCABULARY,)."""
        text, (forward, _, array, host, _) = self.texts[number], self.attention
        at = np.arange(len(text))

        def attend(*q_k_v: Any) -> np.ndarray:
            return host(forward(*(array(x.swapaxes(0, 1)[None]) for x in q_k_v[:3]), True)[0])[0].swapaxes(0, 1)

        return self._read(text, at, self._table([blocks], at[-1:])[0, at // self._size], attend)[-1]

    def _decode(self, numbers: Sequence[int], held: Sequence[Sequence[int]]) -> np.ndarray:
        """Read the last token of each request; return scores of what may follow, (requests, VOCABULARY)."""
        _, decode, array, host, _ = self.attention
        at = np.array([len(self.texts[number]) - 1 for number in numbers])
        table = self._table([held[number] for number in numbers], at)
        cached = array(at + 1), array(table)

        def attend(q: Any, _k: Any, _v: Any, pages: Any) -> np.ndarray:
            return host(decode(array(q), *pages, *cached)[0])

        tokens = [self.texts[number][-1] for number in numbers]
        return self._read(tokens, at, table[np.arange(len(at)), at // self._size], attend)

    def _table(self, held: Sequence[Sequence[int]], at: np.ndarray) -> np.ndarray:
        """Return a row of blocks for each request that reaches to `at`; block 0 where it has too few."""
        table = np.zeros((len(held), at.max() // self._size + 1), int)
        for row, blocks, i in zip(table, held, at, strict=True):
            mine = blocks[: i // self._size + 1]
            row[: len(mine)] = mine
        return table

    def _read(
        self, tokens: Sequence[int], at: np.ndarray, blocks: np.ndarray, attend: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """Read tokens at places `at` of texts, keep keys and values in `blocks`; return scores of what may follow."""
        x = self.tokens[tokens] + self.places[at]
        for pages, (qkv, out, up, down) in zip(self._cache, self.layers, strict=True):
            q, *k_v = (each.reshape(len(x), HEADS, -1) for each in np.split(normed(x) @ qkv, 3, axis=1))
            for page, rows in zip(pages, k_v, strict=True):
                page[blocks, :, at % self._size] = self.attention.array(rows)
            x = x + attend(q, *k_v, pages).reshape(len(x), -1) @ out
            x = x + np.maximum(normed(x) @ up, 0) @ down
        return normed(x) @ self.head


def normed(x: np.ndarray) -> np.ndarray:
    """Return rows of mean 0 and variance 1."""
    x = x - x.mean(axis=-1, keepdims=True)
    return x / x.std(axis=-1, keepdims=True)
