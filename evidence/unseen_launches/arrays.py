"""Arrays, lists, tables and graphs: sorting, merging, searching, hashing, gather and scatter, sums, strings."""

from __future__ import annotations

import zlib

import numpy as np

from evidence.unseen_launches.unseen import (
    NUMBA,
    Case,
    UnseenKernel,
    ceil,
    distinct,
    floats,
    int32,
    launch,
    random,
    zeros,
)


def _words(n: int) -> np.ndarray:
    return np.resize(random().integers(0, 2**32, min(n, 2**22), dtype=np.uint32), n)


def bitonic_sort(blocks: int) -> Case:
    def expected(x, _out):
        return {1: np.sort(x.reshape(blocks, 1024), 1).reshape(-1)}

    return Case(blocks, 512, lambda: (_words(1024 * blocks), zeros(1024 * blocks, dtype=np.uint32)), expected)


def radix_counts(tiles: int, equal: bool) -> Case:
    def expected(key, *_):
        digits = (key >> np.uint32(8) & np.uint32(15)).reshape(tiles, 4096)
        return {1: np.array([np.bincount(tile, minlength=16) for tile in digits]).T}

    def arguments():
        keys = np.full(4096 * tiles, 0x1234, np.uint32) if equal else _words(4096 * tiles)
        return keys, zeros(16, tiles, dtype=np.uint32), *int32(tiles, 8)

    return Case(tiles, 256, arguments, expected)


def merge_path(n: int) -> Case:
    def expected(a, b, *_):
        return {2: np.sort(np.concatenate([a, b]))}

    def arguments():
        a, b = (np.sort(random().integers(0, 2**30, size).astype(np.int32)) for size in (n // 2, n - n // 2))
        return a, b, zeros(n, dtype=np.int32), *int32(a.size, b.size)

    return Case(ceil(n, 8 * 128), 128, arguments, expected)


def _keys(n: int) -> np.ndarray:
    return np.arange(1, n + 1, dtype=np.uint32) * np.uint32(747796405)  # odd: no key twice


def _home(keys: np.ndarray, size: int) -> np.ndarray:
    """Where a key's search begins in a table of `size` places."""
    return keys * np.uint32(2654435761) >> np.uint32(7) & np.uint32(size - 1)


def _slots(keys: np.ndarray, size: int) -> np.ndarray:
    """Place of each key in a table that all of them have been put into."""
    table, mask = np.zeros(size, np.uint32), np.uint32(size - 1)
    slot, left = _home(keys, size), np.arange(keys.size)
    while left.size:
        free = left[table[slot[left]] == 0]
        table[slot[free]] = keys[free]  # of several keys for one place the last one gets it
        left = left[table[slot[left]] != keys[left]]
        slot[left] = (slot[left] + np.uint32(1)) & mask
    return slot


def hash_insert(n: int, size: int, blocks: int | None = None) -> Case:
    """Insert keys that the table holds already, as after the first of several launches; their values are new."""

    def expected(key, value, keys, values, *_):
        slot = _slots(key, size)
        values[slot] = value
        return {2: keys, 3: values}

    def arguments():
        key = _keys(n)
        keys = zeros(size, dtype=np.uint32)
        keys[_slots(key, size)] = key
        return (
            *(key, np.arange(n, dtype=np.int32), keys, zeros(size, dtype=np.int32)),
            *(*int32(n), np.uint32(size - 1)),
        )

    return Case(ceil(n, 256) if blocks is None else blocks, 256, arguments, expected)


def bfs_level(vertices: int, degree: int, share: float) -> Case:
    """Make a graph of random edges; `share` of its vertices are on the level, as many have been reached before."""

    def expected(start, edge, level, following, *_):
        reached = np.repeat(level == 3, np.diff(start))
        near = edge[reached]
        following[near[level[near] < 0]] = 4
        return {3: following}

    def arguments():
        g = random()
        lengths = g.integers(1, 2 * degree, vertices)
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        level = np.select([(u := g.random(vertices)) < share, u < 2 * share], [3, 2], -1).astype(np.int32)
        edge = g.integers(0, vertices, int(start[-1])).astype(np.int32)
        return start, edge, level, np.full(vertices, -1, np.int32), *int32(vertices, 3)

    return Case(ceil(vertices, 256), 256, arguments, expected)


def string_search(n: int, length: int) -> Case:
    def expected(text, pattern, found, *_):
        same = np.ones(n - length + 1, bool)
        for k in range(length):
            same &= text[k : n - length + 1 + k] == pattern[k]
        found[: same.size] = same
        return {2: found}

    def arguments():
        text = np.resize(random().integers(97, 101, min(n, 2**20), dtype=np.uint8), n)
        return text, text[17 : 17 + length].copy(), zeros(n, dtype=np.uint8), *int32(n, length)

    return Case(ceil(n, 256), 256, arguments, expected)


def permute_nchw_nhwc(images: int, channels: int, places: int) -> Case:
    def expected(x, *_):
        return {1: x.transpose(0, 2, 1)}

    return Case(
        ceil(images * channels * places, 256),
        256,
        lambda: (
            floats(images, channels, places),
            zeros(images, places, channels),
            *int32(images, channels, places),
        ),
        expected,
    )


def _index(n: int, table: int, order: str) -> np.ndarray:
    index = random().integers(0, table, n).astype(np.int32)
    return np.sort(index) if order == "sorted" else index


def gather(n: int, table: int, order: str, first: int | None = None) -> Case:
    """`first`: only so many of the n indices."""
    some = n if first is None else first

    def expected(x, index, *_):
        return {2: x[index]}

    return Case(
        ceil(some, 256),
        256,
        lambda: (floats(table), _index(n, table, order)[:some].copy(), zeros(some), *int32(some)),
        expected,
    )


def list_walk(n: int, links: int, steps: int) -> Case:
    def expected(following, first, *_):
        for _ in range(steps):
            first = following[first]
        return {2: first}

    return Case(
        ceil(n, 64),
        64,
        lambda: (
            *(random().permutation(links).astype(np.int32), random().integers(0, links, n).astype(np.int32)),
            *(zeros(n, dtype=np.int32), *int32(n, steps)),
        ),
        expected,
    )


def last_block_sum(n: int, blocks: int) -> Case:
    def expected(x, *_):
        return {3: np.array([x.sum(dtype=float)]), 2: np.zeros(1)}

    return Case(
        blocks,
        256,
        lambda: (floats(n, low=0.0), zeros(blocks), zeros(1, dtype=np.uint32), zeros(1), *int32(n)),
        expected,
    )


def scatter(n: int, table: int, order: str) -> Case:
    """Each place is written at most once: n of `table` places, in random or in rising order."""

    def expected(x, index, out):
        out[index] = x
        return {2: out}

    def arguments():
        places = random().permutation(table)[:n]
        return floats(n), (np.sort(places) if order == "sorted" else places).astype(np.int32), zeros(table)

    return Case(ceil(n, 256), 256, arguments, expected)


def binary_search(values: int, keys: int, order: str, first: int | None = None) -> Case:
    some = keys if first is None else first

    def expected(sorted_values, wanted, _place):
        return {2: np.searchsorted(sorted_values, wanted)}

    def arguments():
        g = random()
        wanted = g.integers(0, 2**30, keys).astype(np.int32)
        wanted = np.sort(wanted) if order == "sorted" else wanted
        return (
            *(np.sort(g.integers(0, 2**30, values).astype(np.int32)), wanted[:some].copy()),
            zeros(some, dtype=np.int32),
        )

    return Case(ceil(some, 256), 256, arguments, expected)


def _crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> np.uint32(1)), table >> np.uint32(1))
    return table.astype(np.uint32)


def crc32(messages: int, words: int) -> Case:
    def expected(data, *_):
        return {2: np.array([zlib.crc32(message.tobytes()) for message in data.T], np.uint32)}

    return Case(
        ceil(messages, 128),
        128,
        lambda: (_words(words * messages).reshape(words, messages), _crc_table(), zeros(messages, dtype=np.uint32)),
        expected,
    )


def segment_sums(segments: int, mean: int) -> Case:
    def expected(x, start, _out):
        return {2: np.add.reduceat(x.astype(float), start[:-1])}

    def arguments():
        lengths = random().integers(1, 2 * mean, segments)
        start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        return floats(int(start[-1]), low=0.0), start, zeros(segments)

    return Case(segments, 256, arguments, expected)


def common_subsequence(pairs: int) -> Case:
    def expected(first, second, _length):
        rows = np.zeros((pairs, 257), int)
        for i in range(256):
            new = np.zeros_like(rows)
            for j in range(256):
                same = first[:, i] == second[:, j]
                new[:, j + 1] = np.where(same, rows[:, j] + 1, np.maximum(rows[:, j + 1], new[:, j]))
            rows = new
        return {2: rows[:, -1]}

    def arguments():
        first, second = random().integers(0, 4, (2, pairs, 256)).astype(np.uint8)
        return first, second, zeros(pairs, dtype=np.int32)

    return Case(pairs, 256, arguments, expected)


def _touched(index: np.ndarray, size: int = 4) -> int:
    """Distinct bytes in sectors of 32 bytes of the elements at `index`."""
    return 32 * distinct(index // (32 // size))


def _gather(n: int, table: int, order: str, simulated: int):
    return launch(
        {"n": n, "table": table, "order": order},
        {"first": simulated} if simulated < n else None,
        footprint=lambda: (4 * n + _touched(_index(n, table, order)), 4 * n),
    )


def _hash(n: int, size: int, simulated: int):
    def footprint() -> tuple[int, int]:
        home = _touched(_home(_keys(n), size).astype(np.int64))
        return 8 * n + home, 2 * home

    return launch({"n": n, "size": size}, {"blocks": simulated} if 256 * simulated < n else None, footprint=footprint)


KERNELS = [
    UnseenKernel(
        "bitonic_sort",
        "arrays.cu",
        bitonic_sort,
        {"blocks": 3},
        [
            launch({"blocks": 132}, {"blocks": 33}),
            launch({"blocks": 4096}, {"blocks": 64}),
            launch({"blocks": 65536}, {"blocks": 64}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "radix_counts",
        "arrays.cu",
        radix_counts,
        {"tiles": 3, "equal": False},
        [
            launch({"tiles": 256, "equal": False}, {"tiles": 64}),
            launch({"tiles": 16384, "equal": False}, {"tiles": 64}),
            launch({"tiles": 4096, "equal": True}, {"tiles": 64}),
        ],
    ),
    UnseenKernel(
        "merge_path",
        "arrays.cu",
        merge_path,
        {"n": 3000},
        [
            launch({"n": 2**17}),
            launch({"n": 2**22}, sample=256, footprint=(4 * 2**22, 4 * 2**22)),
            launch({"n": 2**26}, {"n": 2**24}, sample=256, footprint=(4 * 2**26, 4 * 2**26)),
        ],
        warm=True,
    ),
    UnseenKernel(
        "hash_insert",
        "arrays.cu",
        hash_insert,
        {"n": 600, "size": 1024},
        [_hash(2**15, 2**16, 128), _hash(2**20, 2**21, 512), _hash(2**23, 2**24, 512)],
        warm=True,
    ),
    UnseenKernel(
        "bfs_level",
        "arrays.cu",
        bfs_level,
        {"vertices": 500, "degree": 8, "share": 0.2},
        [
            launch({"vertices": 2**16, "degree": 8, "share": 0.2}),
            launch({"vertices": 2**18, "degree": 16, "share": 0.05}),
            launch({"vertices": 2**18, "degree": 16, "share": 0.4}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "string_search",
        "arrays.cu",
        string_search,
        {"n": 2000, "length": 6},
        [
            launch({"n": 2**18, "length": 8}),
            launch({"n": 2**24, "length": 8}, {"n": 2**18}),
            launch({"n": 2**29, "length": 16}, {"n": 2**18}),
        ],
    ),
    UnseenKernel(
        "permute_nchw_nhwc",
        "arrays.cu",
        permute_nchw_nhwc,
        {"images": 2, "channels": 20, "places": 49},
        [
            launch({"images": 1, "channels": 64, "places": 3136}),
            launch({"images": 64, "channels": 64, "places": 3136}, {"images": 1}),
            launch({"images": 64, "channels": 2048, "places": 49}, {"images": 2}),
            launch({"images": 64, "channels": 3, "places": 50176}, {"images": 1}),
        ],
    ),
    UnseenKernel(
        "gather",
        "arrays.cu",
        gather,
        {"n": 1000, "table": 500, "order": "random"},
        [
            _gather(2**18, 2**18, "random", 2**18),
            _gather(2**22, 2**22, "random", 2**18),
            _gather(2**25, 2**26, "random", 2**18),
            _gather(2**25, 2**26, "sorted", 2**18),
        ],
        warm=True,
    ),
    UnseenKernel(
        "list_walk",
        "arrays.cu",
        list_walk,
        {"n": 100, "links": 500, "steps": 9},
        [
            launch({"n": 64, "links": 2**12, "steps": 512}),
            launch({"n": 2**16, "links": 2**20, "steps": 64}),
            launch({"n": 2**14, "links": 2**25, "steps": 256}, {"n": 2**12, "steps": 64}, work=4),
        ],
        warm=True,
    ),
    UnseenKernel(
        "last_block_sum",
        "arrays.cu",
        last_block_sum,
        {"n": 3000, "blocks": 4},
        [
            launch({"n": 2**18, "blocks": 132}),
            launch({"n": 2**24, "blocks": 264}, {"n": 2**22, "blocks": 66}),
            launch({"n": 2**28, "blocks": 1056}, {"n": 2**24, "blocks": 66}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "scatter",
        NUMBA,
        scatter,
        {"n": 1000, "table": 1500, "order": "random"},
        [
            launch({"n": 2**18, "table": 2**18, "order": "random"}),
            launch({"n": 2**20, "table": 2**22, "order": "random"}),
            launch({"n": 2**20, "table": 2**22, "order": "sorted"}),
        ],
    ),
    UnseenKernel(
        "binary_search",
        NUMBA,
        binary_search,
        {"values": 500, "keys": 300, "order": "random"},
        [
            launch({"values": 2**16, "keys": 2**16, "order": "random"}),
            launch(
                {"values": 2**20, "keys": 2**22, "order": "random"},
                {"first": 2**17},
                footprint=(4 * (2**20 + 2**22), 4 * 2**22),
            ),
            launch(
                {"values": 2**24, "keys": 2**22, "order": "sorted"},
                {"first": 2**17},
                footprint=(4 * (2**24 + 2**22), 4 * 2**22),
            ),
        ],
        warm=True,
    ),
    UnseenKernel(
        "crc32",
        NUMBA,
        crc32,
        {"messages": 200, "words": 9},
        [
            launch({"messages": 4096, "words": 256}, {"words": 64}, work=4),
            launch({"messages": 2**17, "words": 256}, {"messages": 2**13, "words": 64}, work=4),
            launch({"messages": 2**20, "words": 64}, {"messages": 2**13}),
        ],
    ),
    UnseenKernel(
        "segment_sums",
        NUMBA,
        segment_sums,
        {"segments": 5, "mean": 400},
        [
            launch({"segments": 1024, "mean": 100}),
            launch({"segments": 65536, "mean": 100}, {"segments": 1024}),
            launch({"segments": 4096, "mean": 16384}, {"segments": 64}),
        ],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "common_subsequence",
        NUMBA,
        common_subsequence,
        {"pairs": 3},
        [launch({"pairs": 66}), launch({"pairs": 2112}, {"pairs": 33}), launch({"pairs": 33792}, {"pairs": 33})],
        warm=True,
    ),
]
