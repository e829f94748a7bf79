"""Run programs of Rodinia, PolyBench/GPU, SHOC, ThunderKittens and a book's exercises on the simulator, and write
suites.md.

    python -m evidence.cuda_programs.suites rodinia=DIR polybench=DIR shoc=DIR kittens=DIR pmpp=DIR [--only NAME]...
        [--rest]
    python -m evidence.cuda_programs.suites --page

DIR are clones of `SOURCES`. suites.json keeps what came of each program; --rest leaves alone what it has already.
Rodinia's data lie outside its repository: `INPUTS` writes random ones of the same form where a program needs some.
ThunderKittens' ladders are changed in two places, by `_small`, sizes of the book's exercises by `_shorter`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidence.cuda_programs.read import READ_SUITES
from evidence.cuda_programs.run import VERDICTS, execute, is_worse

RECORD = Path(__file__).with_name("suites.json")
PAGE = Path(__file__).with_name("suites.md")
SECONDS = 60  # of processor time for a program
# What CUDA 13 has no more: a function's old name, and members of cudaDeviceProp, which these programs print.
OLD_NAMES = (
    "-DcudaThreadSynchronize=cudaDeviceSynchronize",
    "-DdeviceOverlap=asyncEngineCount",
    "-DclockRate=warpSize",
    "-DmemoryClockRate=warpSize",
)
SOURCES = {
    "rodinia": "yuhc/gpu-rodinia",
    "polybench": "cavazos-lab/PolyBench-ACC",
    "shoc": "vetter/shoc",
    "kittens": "HazyResearch/ThunderKittens",
    "pmpp": "psmarter/PMPP-Learning",  # of "Programming Massively Parallel Processors"
}
# How a suite's programs say that their results are right, or wrong; 完成 is that they have ended.
_COUNTED = r"(?:Threshold of [\d.]+ Percent|Number of misses|Error count)"
_RIGHT = re.compile(rf"{_COUNTED}: 0$|\bPASS(?:ED)?\b|[✅✓](?!.*完成)", re.M | re.I)
_WRONG = re.compile(
    r"(?:Threshold of [\d.]+ Percent|Number of misses|Error count): [1-9]|\bFAIL(?:ED|URE)?\b|[md]ismatch|[❌✗]", re.I
)


SAYS = _RIGHT, _WRONG


@dataclass(frozen=True)
class Program:
    """A program: its folder in the clone, its files, what the compiler and the program are given."""

    suite: str
    name: str
    folder: str
    files: str
    flags: str = ""
    arguments: str = ""


def _polybench() -> list[Program]:
    folders = (
        "datamining/correlation datamining/covariance linear-algebra/kernels/2mm linear-algebra/kernels/3mm "
        "linear-algebra/kernels/atax linear-algebra/kernels/bicg linear-algebra/kernels/doitgen "
        "linear-algebra/kernels/gemm linear-algebra/kernels/gemver linear-algebra/kernels/gesummv "
        "linear-algebra/kernels/mvt linear-algebra/kernels/syr2k linear-algebra/kernels/syrk "
        "linear-algebra/solvers/gramschmidt linear-algebra/solvers/lu stencils/adi stencils/convolution-2d "
        "stencils/convolution-3d stencils/fdtd-2d stencils/jacobi-1d-imper stencils/jacobi-2d-imper"
    )
    files = {"convolution-2d": "2DConvolution", "convolution-3d": "3DConvolution", "fdtd-2d": "fdtd2d"}
    files |= {"jacobi-1d-imper": "jacobi1D", "jacobi-2d-imper": "jacobi2D"}
    found = []
    for folder in folders.split():
        name = folder.rpartition("/")[2]
        up = "../" * (folder.count("/") + 1)
        flags = f"-DMINI_DATASET -I{up}utilities"
        found.append(Program("polybench", name, f"CUDA/{folder}", f"{files.get(name, name)}.cu", flags))
    return found


_SHOC = """level0/BusSpeedDownload level0/BusSpeedReadback level0/DeviceMemory level1/bfs/BFS level1/md/MD
    level1/md5hash/MD5Hash level1/neuralnet/NeuralNet level1/reduction/Reduction level1/scan/Scan level1/sort/Sort
    level1/spmv/Spmv level1/triad/Triad level2/s3d/S3D"""


def _shoc() -> list[Program]:
    common = "OptionParser.cpp Option.cpp ResultDatabase.cpp Timer.cpp CTimer.cpp InvalidArgValue.cpp ProgressBar.cpp"
    found = []
    for path in _SHOC.split():
        folder, _, name = f"src/cuda/{path}".rpartition("/")
        up = "../" * folder.count("/")
        files = [f"{name}.cu", f"{up}cuda/common/main.cpp", *(f"{up}common/{file}" for file in common.split())]
        if name in ("BFS", "Sort"):
            files.insert(1, f"{name.lower()}_kernel.cu")
        if name == "BFS":
            files.append(f"{up}common/Graph.cpp")
        flags = f"-I. -I{up}common -I{up}cuda/common"
        found.append(Program("shoc", name, folder, " ".join(files), flags, "-s 1 -n 1"))
    return found


def _kittens() -> list[Program]:
    """Return the ladders of products for Hopper and for Blackwell."""
    found = []
    for card, arch, macro, last, prefix in (
        ("h100", "90a", "HOPPER", 8, ""),
        ("b200", "100a", "BLACKWELL", 9, "b200_"),
    ):
        flags = f"-arch=sm_{arch} -std=c++20 -I../../../include -DKITTENS_{macro}"
        folder, levels = f"kernels/gemm/educational_{card}", [f"level_0{n}" for n in range(1, last + 1)]
        found += [Program("kittens", prefix + level, folder, f"{level}.cu", flags) for level in levels]
    return found


# Of chapters, how many exercises have code; without those that need cuBLAS (16.4, 16.5) or MPI (20.1).
_CHAPTERS = {2: 1, 3: 5, 4: 1, 5: 2, 6: 2, 7: 3, 8: 1, 9: 1, 10: 1, 11: 1, 12: 1, 13: 1, 14: 1, 15: 1, 16: 3}
_CHAPTERS |= {17: 3, 18: 1, 21: 2}


def _pmpp() -> list[Program]:
    graph = (
        "bfs_parallel",
        "bfs_sequential",
        "device_memory",
        "graph_conversions",
        "graph_generators",
        "main",
        "utils",
    )
    found = []
    for chapter, count in _CHAPTERS.items():
        for exercise in range(1, count + 1):
            folder = f"Exercises/Chapter{chapter:02}/Exercise{exercise:02}"
            files = " ".join(f"src/{file}.cu" for file in graph) if chapter == 15 else "solution.cu test.cpp"
            flags = f"-I../../../Common{' -Iinclude' * (chapter == 15)}{' -rdc=true' * (chapter == 21)}"
            found.append(Program("pmpp", f"{chapter}.{exercise}", folder, files, f"-std=c++17 {flags}"))
    return found


PROGRAMS = [
    Program("rodinia", "backprop", "cuda/backprop", "backprop.c facetrain.c imagenet.c backprop_cuda.cu", "", "1024"),
    Program("rodinia", "bfs", "cuda/bfs", "bfs.cu", "", "graph.txt"),
    Program("rodinia", "gaussian", "cuda/gaussian", "gaussian.cu", "", "-s 64 -q"),
    Program("rodinia", "hotspot", "cuda/hotspot", "hotspot.cu", "", "64 2 2 temp.txt power.txt out.txt"),
    Program("rodinia", "hotspot3D", "cuda/hotspot3D", "3D.cu", "", "64 8 2 power.txt temp.txt out.txt"),
    Program("rodinia", "hybridsort", "cuda/hybridsort", "main.cu bucketsort.cu mergesort.cu", "", "r"),
    Program(
        "rodinia",
        "kmeans",
        "cuda/kmeans",
        "cluster.c getopt.c kmeans.c kmeans_clustering.c kmeans_cuda.cu rmse.c",
        "",
        "-o -i points.txt",
    ),
    Program(
        "rodinia",
        "lavaMD",
        "cuda/lavaMD",
        "main.c kernel/kernel_gpu_cuda_wrapper.cu util/num/num.c util/timer/timer.c util/device/device.cu",
        "",
        "-boxes1d 2",
    ),
    Program("rodinia", "lud", "cuda/lud", "cuda/lud.cu cuda/lud_kernel.cu common/common.c", "-Icommon", "-s 64 -v"),
    Program("rodinia", "nn", "cuda/nn", "nn_cuda.cu", "", "files.txt -r 5 -lat 30 -lng 90"),
    Program("rodinia", "nw", "cuda/nw", "needle.cu", "", "64 10"),
    Program(
        "rodinia",
        "particlefilter",
        "cuda/particlefilter",
        "ex_particle_CUDA_float_seq.cu",
        "",
        "-x 32 -y 32 -z 3 -np 512",
    ),
    Program("rodinia", "pathfinder", "cuda/pathfinder", "pathfinder.cu", "", "2048 16 4"),
    Program("rodinia", "srad_v2", "cuda/srad/srad_v2", "srad.cu", "", "64 64 0 31 0 31 0.5 2"),
    Program(
        "rodinia",
        "streamcluster",
        "cuda/streamcluster",
        "streamcluster_cuda_cpu.cpp streamcluster_cuda.cu",
        "",
        "5 10 16 256 256 50 none out.txt 1",
    ),
    *_polybench(),
    *_shoc(),
    *_kittens(),
    *_pmpp(),
]


def _graph(folder: Path, rng: np.random.Generator) -> None:
    """Write a graph of 512 nodes for bfs: where each one's edges begin and how many there are, source, edges."""
    degrees = rng.integers(1, 6, 512)
    starts = np.cumsum(degrees) - degrees
    rows = [f"{s} {d}" for s, d in zip(starts, degrees, strict=True)]
    edges = [f"{to} 1" for to in rng.integers(0, 512, degrees.sum())]
    (folder / "graph.txt").write_text("\n".join(["512", *rows, "", "0", "", str(len(edges)), *edges]) + "\n")


def _heat(points: int) -> Callable[[Path, np.random.Generator], None]:
    def write(folder: Path, rng: np.random.Generator) -> None:
        (folder / "temp.txt").write_text("".join(f"{x:.6f}\n" for x in rng.uniform(320, 340, points)))
        (folder / "power.txt").write_text("".join(f"{x:.6f}\n" for x in rng.uniform(0, 1e-3, points)))

    return write


def _points(folder: Path, rng: np.random.Generator) -> None:
    rows = (f"{k} " + " ".join(f"{x:.4f}" for x in row) for k, row in enumerate(rng.uniform(0, 1, (512, 8))))
    (folder / "points.txt").write_text("\n".join(rows) + "\n")


def _storms(folder: Path, rng: np.random.Generator) -> None:
    """Write 512 records of 49 characters for nn, whose latitude and longitude stand at characters 29 and 34."""
    records = "".join(
        f"1980  6 14  6 15 ALBERTO   {lat:5.1f} {lng:5.1f}   35   0".ljust(48)[:48] + "\n"
        for lat, lng in zip(rng.uniform(5, 60, 512), rng.uniform(10, 99, 512), strict=True)
    )
    (folder / "storms.db").write_text(records)
    (folder / "files.txt").write_text("storms.db\n")


def _configured(folder: Path, _: np.random.Generator) -> None:
    (folder / "config.h").write_text("#define HAVE_GETTIMEOFDAY 1\n")  # SHOC's configure writes one


def _small(folder: Path, _: np.random.Generator) -> None:
    """Multiply matrices of 256, or of 512 where clusters compute so many rows, in place of 4096 and 1024; NVRTC
    overloads no static with other functions, as nvcc does."""
    for file in (folder / "launch.cu", folder / "level_01.cu"):
        text = re.sub(r"\bN = (?:4096|1024);", "N = 256;", file.read_text())
        file.write_text(re.sub(r"run_benchmark\((?:4096|1024)\)", "run_benchmark(512)", text))
    layouts = folder.parents[2] / "include/types/global/gl.cuh"
    changed = re.sub(r"static (constexpr std::enable_if_t<\(\w > 0\), int> \w+\(\))", r"\1 const", layouts.read_text())
    layouts.write_text(changed)


_SHORTER = {
    r"\b(ITERATIONS|NUM_RUNS|iterations|timing_runs) = \d+;": r"\1 = 1;",
    r"\b([MN]_(?:ROWS|COLS)) = 1(024|536);": r"\1 = 192;",
    r"= 10000000;": "= 100000;",
    r"= 1000000;": "= 20000;",
    r"testPerformance\(4096, 4096, 100\)": "testPerformance(256, 256, 1)",
    r"grid\(128, 128, 64\)": "grid(32, 32, 64)",
}


def _shorter(folder: Path, _: np.random.Generator) -> None:
    """Repeat nothing and take a hundredth of the longest data: what the exercises measure, they check before."""
    for file in folder.glob("test.cpp"):
        text = file.read_text()
        for long, short in _SHORTER.items():
            text = re.sub(long, short, text)
        file.write_text(text)


_OF_SUITE = {"shoc": _configured, "kittens": _small, "pmpp": _shorter}
INPUTS: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "bfs": _graph,
    "hotspot": _heat(64 * 64),
    "hotspot3D": _heat(64 * 64 * 8),
    "kmeans": _points,
    "nn": _storms,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clones", nargs="*", metavar="SUITE=DIR", help=f"clones of {', '.join(SOURCES.values())}")
    parser.add_argument("--only", action="append", help="run the program of this name")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of processor time for each ({SECONDS})")
    parser.add_argument("--rest", action="store_true", help="run those that the record lacks")
    parser.add_argument("--page", action="store_true", help="write the page from the record")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {"commits": {}, "programs": {}}
    if RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    known, lost = record["programs"], []
    clones = dict(clone.split("=", 1) for clone in options.clones)
    if unknown := clones.keys() - SOURCES.keys():
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    for suite, folder in clones.items():
        record["commits"][suite] = _commit(Path(folder))
        for program in (p for p in PROGRAMS if p.suite == suite):
            key = f"{suite}/{program.name}"
            if (options.only and program.name not in options.only) or (options.rest and key in known):
                continue
            now = {"date": f"{datetime.date.today()}", **_run(program, Path(folder), options.seconds)}
            lost += [key] * is_worse(known.get(key, {}), now)
            known[key] = now
            print(f"{key}: {now['verdict']} {now['why']}", flush=True)
            record["programs"] = dict(sorted(known.items()))
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")
    found = [one["verdict"] for one in record["programs"].values()]
    if lost:
        print(f"no longer what they were: {', '.join(lost)}")
    print(json.dumps({"programs": len(found), **{v: found.count(v) for v in VERDICTS}, "device": "simulator"}))
    return int(bool(lost))


def _commit(folder: Path) -> str:
    head = folder / "COMMIT"  # of a copy without git
    if head.exists():
        return head.read_text(encoding="utf-8").strip()
    from evidence.cuda_programs.run import _commit as of_clone

    return of_clone(str(folder))


def _run(program: Program, clone: Path, seconds: int) -> dict[str, Any]:
    found = execute(*command(program, clone), clone, seconds, SAYS)
    return {"arguments": program.arguments, "seconds": seconds, **found}


def command(program: Program, clone: Path) -> tuple[Path, list[str], list[str], list[str]]:
    """Write what a program reads; return where it runs, its files, what the compiler is given, and what it is."""
    if write := INPUTS.get(program.name, _OF_SUITE.get(program.suite)):
        write(clone / program.folder, np.random.default_rng(35))
    flags = [*program.flags.split(), *OLD_NAMES]
    return clone / program.folder, program.files.split(), flags, program.arguments.split()


_BOOK = (
    "pmpp are a reader's solutions to the exercises of Programming Massively Parallel Processors, which time nothing "
    "here and take less of their longest data. "
)


def page(record: dict[str, Any]) -> str:
    """Return the page for a record."""
    programs, book = record["programs"], "pmpp" in record["commits"]
    dates = sorted({one["date"] for one in programs.values()})
    sources = ", ".join(
        f"[{suite}](https://github.com/{SOURCES[suite]}) at `{commit[:10]}`"
        for suite, commit in record["commits"].items()
    )
    words = {
        "passes": "passes its own check",
        "ends": "ends; has no check of its own",
        "defect": "stopped at a defect, below",
        "fails": "fails or ends with an error, below",
        "refused": "refused, below",
        "time": "not done in its time",
    }
    rows = []
    for verdict, text in words.items():
        names = [name for name, one in programs.items() if one["verdict"] == verdict]
        rows.append(f"| {text} ({len(names)}) | {', '.join(names)} |")
    parts = [
        "# Programs of other suites on the simulator",
        "<!-- Written by `python -m evidence.cuda_programs.suites`. -->",
        f"On {' and '.join(dates)}, {len(programs)} programs of {sources} were run by `python -m warplab run`, "
        "unmodified but for sizes, with all checks of `--strict=cuda`, on small arguments, each for at "
        f"most {SECONDS} s of processor time, with stand-ins for a function and two members of `cudaDeviceProp` that "
        "CUDA 13 lacks. Rodinia's inputs are random ones of the same form, as its own lie outside its repository. "
        "ThunderKittens' ladders of products for Hopper (TMA, wgmma, warp specialisation) and Blackwell (tcgen05, "
        "tensor memory; held to no GPU) multiply matrices of 256 and 512 in place of 4,096, and four "
        "member functions have lost the word `static`, which NVRTC refuses there and nvcc takes. "
        f"{_BOOK if book else ''}All launched "
        f"{sum(one['kernels'] for one in programs.values()):,} kernels "
        f"{sum(one['launches'] for one in programs.values()):,} times. No GPU took part.",
        "| what came of them | programs |\n| --- | --- |\n" + "\n".join(rows),
    ]
    for title, verdict in (("Defects", "defect"), ("Failures", "fails"), ("Refused", "refused")):
        if found := {name: one for name, one in programs.items() if one["verdict"] == verdict}:
            lines = [
                f"- **{name}** {one['why']} — {READ_SUITES.get(name, 'not yet read in the code.')}"
                for name, one in found.items()
            ]
            parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
