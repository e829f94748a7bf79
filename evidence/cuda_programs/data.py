"""Small random files in place of those that programs of HeCBench read and the repository leaves out."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

SIDE = 64  # of pictures and grids


def _numbers(count: int, low: float = 0, high: float = 1) -> Callable[[random.Random], str]:
    return lambda rng: "".join(f"{rng.uniform(low, high):.4f}\n" for _ in range(count))


def _bmp(rng: random.Random) -> bytes:
    pixels = rng.randbytes(3 * SIDE * SIDE)
    head = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, len(pixels), 2835, 2835, 0, 0) + pixels


def _ppm(rng: random.Random) -> bytes:
    return f"P6\n{SIDE} {SIDE}\n255\n".encode() + rng.randbytes(3 * SIDE * SIDE)


def _neighbours(rng: random.Random, nodes: int) -> list[list[int]]:
    """Return the sorted neighbours of each node of an undirected graph."""
    found: list[set[int]] = [set() for _ in range(nodes)]
    for _ in range(3 * nodes):
        a, b = rng.sample(range(nodes), 2)
        found[a].add(b)
        found[b].add(a)
    return [sorted(each) for each in found]


def _ecl(rng: random.Random) -> bytes:
    """Return a graph in the binary format of the ECL suite, with weights."""
    lists = _neighbours(rng, 256)
    starts = [sum(map(len, lists[:n])) for n in range(len(lists) + 1)]
    weights = [1 + (a * b) % 97 for a, each in enumerate(lists) for b in each]  # the same in both directions
    numbers = [len(lists), starts[-1], *starts, *(b for each in lists for b in each), *weights]
    return struct.pack(f"<{len(numbers)}i", *numbers)


def _rodinia_graph(rng: random.Random) -> str:
    lists = _neighbours(rng, 2048)
    rows = [f"{sum(map(len, lists[:n]))} {len(each)}" for n, each in enumerate(lists)]
    edges = [f"{b} 1" for each in lists for b in each]
    return "\n".join([f"{len(lists)}", *rows, "0", f"{len(edges)}", *edges]) + "\n"


def _mesh(rng: random.Random) -> str:
    nodes = 384
    rows = []
    for n in range(nodes):
        sides = [
            f"{1 + (n + step) % nodes} {rng.random():.4f} {rng.random():.4f} {rng.random():.4f}"
            for step in (1, -1, 16, -16)
        ]
        rows.append(" ".join([f"{rng.uniform(0.5, 1):.4f}", *sides]))
    return "\n".join([f"{nodes}", *rows]) + "\n"


def _matrix(rng: random.Random) -> str:
    """Return a lower triangular matrix in the format of Matrix Market."""
    size = 256
    places = [(i, j) for i in range(1, size + 1) for j in sorted({i, *(rng.randint(1, i) for _ in range(4))})]
    rows = [f"{i} {j} {rng.uniform(0.5, 1):.4f}" for i, j in places]
    return "\n".join(["%%MatrixMarket matrix coordinate real general", f"{size} {size} {len(rows)}", *rows]) + "\n"


def _signed_edges(rng: random.Random) -> str:
    rows = [f"{a},{b},{rng.choice((-1, 1))}\n" for a, each in enumerate(_neighbours(rng, 256)) for b in each if a < b]
    return "source,target,sign\n" + "".join(rows)


# program → the file as the program is given it, from its folder → what to put there
FILES: dict[str, dict[str, Callable[[random.Random], str | bytes]]] = {
    "aes": {"../urng-sycl/URNG_Input.bmp": _bmp},
    "bfs": {"../data/bfs/graph1MW_6.txt": _rodinia_graph},
    "cc": {"delaunay_n24.egr": _ecl},
    "cfd": {"../data/cfd/fvcorr.domn.097K": _mesh},
    "floydwarshall2": {"CollegeMsg.egr": _ecl},
    "ge-spmm": {"data/snap/amazon0302/amazon0302.mtx": _matrix},
    "gibbs": {"data.csv": lambda rng: "".join(f"{rng.randint(0, 40)} {rng.uniform(1, 9):.3f}\n" for _ in range(1000))},
    "graphB+": {"graph.csv": _signed_edges},
    "hotspot": {f"../data/hotspot/{name}_512": _numbers(SIDE * SIDE, 0, 400) for name in ("temp", "power")},
    "hotspot3D": {f"../data/hotspot3D/{name}_512x8": _numbers(8 * SIDE * SIDE, 0, 400) for name in ("temp", "power")},
    "kmeans": {
        "../data/kmeans/kdd_cup": lambda rng: "".join(
            f"{n} {' '.join(f'{rng.random():.4f}' for _ in range(34))}\n" for n in range(400)
        )
    },
    "medianfilter": {"../medianfilter-sycl/data/SierrasRGB.ppm": _ppm},
    "recursiveGaussian": {"StoneRGB.ppm": _ppm},
    "sa": {"genome.txt": lambda rng: "".join(rng.choices("ACGT", k=15625))},
    "sad": {"coins.bmp": _bmp, "coin.bmp": _bmp},
    "sobel": {"../sobel-sycl/SobelFilter_Input.bmp": _bmp},
    "sptrsv": {"../sptrsv-sycl/lp1.mtx": _matrix},
    "ss": {"../ss-sycl/StringSearch_Input.txt": lambda rng: "clEnqueueNDRangeKernel clFinish clFlush\n" * 99},
    "svd3x3": {"Dataset_1M.txt": lambda rng: "500\n" + _numbers(9 * 500, -1, 1)(rng)},
    "urng": {"../urng-sycl/URNG_Input.bmp": _bmp},
}


def write(program: str, folder: Path) -> list[str]:
    """Write the files that a program lacks; return the names of all that come from here. `folder`: the program's."""
    for name, text in FILES.get(program, {}).items():
        file = folder / name
        if not file.exists():
            made = text(random.Random(name))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(made if isinstance(made, bytes) else made.encode())
    return list(FILES.get(program, {}))
