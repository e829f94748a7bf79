"""Runs the kernels on this machine's GPU and writes `recorded/results.npz` and `recorded/results.json`.

    python -m tests.warplab.differential.record [--batches 48] [--processes 8] [--folder FOLDER] [--ptx FOLDER]
        [--all FILE]

Needs CuPy. `--ptx`: a folder with the batches' PTX, which `--compile FOLDER` wrote; no GPU is needed for that.
`--all`: also write every word of every result there.
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import multiprocessing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.warplab.differential import execution
from tests.warplab.differential.generator import BATCH, kernel, seeds_of, source_of

RECORDED = Path(__file__).parent / "recorded"
BATCHES = 48
SAMPLE = 200  # seeds, from 0 on, of which all words are recorded; of the others a digest


@dataclass(frozen=True)
class Recorded:
    """`digests`: of each seed's results. `words`: the results themselves, of the sample and of approximate kernels.

    `ptx`, `sources`: digests by batch. `about`: device, driver, date.
    """

    digests: list[str]
    words: dict[int, np.ndarray]
    ptx: list[str]
    sources: list[str]
    about: dict


def load(folder: Path = RECORDED) -> Recorded:
    with np.load(folder / "results.npz") as arrays:
        parts = np.split(arrays["words"], np.cumsum(arrays["sizes"])[:-1])
        words = dict(zip(arrays["seeds"].tolist(), parts, strict=True))
        digests, ptx, sources = (
            [f"{value:016x}" for value in arrays[name].tolist()] for name in ("digests", "ptx", "sources")
        )
    return Recorded(digests, words, ptx, sources, json.loads((folder / "results.json").read_text()))


def save(folder: Path, ptx: list[str], results: dict[int, np.ndarray], about: dict) -> None:
    """`ptx`: digests by batch. `results`: words by seed."""
    seeds = [s for s in sorted(results) if s < SAMPLE or kernel(s).approximate]

    def numbers(digests) -> np.ndarray:
        return np.array([int(d, 16) for d in digests], np.uint64)

    folder.mkdir(exist_ok=True)
    np.savez_compressed(
        folder / "results.npz",
        digests=numbers(execution.result_digest(results[s]) for s in sorted(results)),
        ptx=numbers(ptx),
        sources=numbers(execution.digest(source_of(batch)) for batch in range(len(ptx))),
        seeds=np.array(seeds, np.int32),
        sizes=np.array([results[s].size for s in seeds], np.int32),
        words=np.concatenate([results[s] for s in seeds]),
    )
    (folder / "results.json").write_text(json.dumps(about, indent=1) + "\n")


def run_batch(batch: int, folder: Path | None) -> tuple[str, dict[int, np.ndarray]]:
    """Digest of the PTX and the results of a batch on the GPU."""
    ptx = gzip.decompress(_file(folder, batch).read_bytes()).decode() if folder else execution.ptx_of(batch)
    module = execution.gpu_module(ptx)
    return execution.ptx_digest(ptx), {seed: execution.run_on_gpu(module, kernel(seed)) for seed in seeds_of(batch)}


def _file(folder: Path, batch: int) -> Path:
    return folder / f"batch{batch}.ptx.gz"


def compile_all(folder: Path, batches: int) -> None:
    folder.mkdir(exist_ok=True)
    for batch in range(batches):
        _file(folder, batch).write_bytes(gzip.compress(execution.ptx_of(batch).encode()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--folder", type=Path, default=RECORDED)
    parser.add_argument("--ptx", type=Path)
    parser.add_argument("--compile", type=Path)
    parser.add_argument("--all", type=Path)
    arguments = parser.parse_args()
    if arguments.compile:
        compile_all(arguments.compile, arguments.batches)
        return
    work = [(batch, arguments.ptx) for batch in range(arguments.batches)]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        batches = pool.starmap(run_batch, work, chunksize=1)
    results = {seed: words for _, by_seed in batches for seed, words in by_seed.items()}

    import cupy

    about = {
        "device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "date": datetime.date.today().isoformat(),
        "kernels": len(results),
    }
    save(arguments.folder, [digest for digest, _ in batches], results, about)
    if arguments.all:
        np.savez_compressed(arguments.all, **{str(seed): words for seed, words in results.items()})
    print(f"{len(results)} kernels in {len(batches)} batches of {BATCH} on {about['device']}")


if __name__ == "__main__":
    main()
