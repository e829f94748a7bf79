"""README.md: what runs through which front end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from evidence.front_ends import on_mlir

HEAD = """# What works on which front end

<!-- Written by `python -m evidence.front_ends.run`; do not edit. -->

Kernels of other compilers on the simulator ([docs/front_ends.md](../../docs/front_ends.md)): programs that others
wrote, unmodified but for sizes and for benchmarks, which ask for times; the labs' own Numba kernels under
numba-cuda-mlir; two kernels of CuTe. All checks are on. No GPU took part. Versions: {versions}.

*ran*: to its end, with its own comparisons right. *found*: the simulator reports a defect of the kernel. *partly*: some
of several tests or launches. *refused*: the compiler, or the simulator, says that it does not have what is asked for.
"""

TITLES = {
    "tutorials": "Triton's tutorials",
    "tutorials-2024": "Triton's tutorials of 2024, which say device='cuda'",
    "triton-tests": "Triton's own tests of its language",
    "puzzles": "Triton-Puzzles, solved",
    "labs": "The labs' Numba kernels under numba-cuda-mlir",
    "mlir-tests": "numba-cuda-mlir's own tests",
    "cute": "CuTe DSL, by its PTX",
}
READ = {
    "tutorials": """The clone is a fork for CPUs, whose tutorial 01 has options that Triton itself lacks; the kernel and
the call of Triton's own 01 were tried by hand, and run. Tutorial 08 gives its kernel an array of addresses of tensors,
which become those of their copies on the device; what 09 asks of cuBLAS torch computes. 10 is for Blackwell, and left
out.
""",
    "puzzles": """Puzzle 12 is refused by Triton 3.9 itself.

In puzzle 9 `tl.sum(qk_exp * v[None, :], axis=1)` adds by shuffles, and the first addition is fused with the product
before it: lanes 0 to 15 round a product that lanes 16 to 31 do not, and the other way round, so that the two halves of
a warp hold sums which differ in their last bits. Then all 32 lanes store their sum to one element of shared memory;
which stays there CUDA does not say. Any of them is a right sum to rounding, so that is not reported of Triton's
kernels, as it was until 2026-11-26.
""",
    "labs": """What stops: a device function that shuffles ends in an error inside of numba-cuda-mlir, and histograms
index by a `uint8`, which is sign-extended ([docs/front_ends.md](../../docs/front_ends.md)).
""",
    "mlir-tests": """Of the clone's 257 files of tests those of kernels and of what kernels call, `FILES` in on_mlir.py:
{done} of {wanted} so far. Each has {seconds} s of processor time.

What does not pass, read in the code or the PTX:

- *UninitializedRead* in test_array_reductions.py and test_numpy.py: `np.mean` and `np.var` begin their sum with what
  `malloc` gave; *IllegalAddress* in test_array_view.py: a slice with a step that is too long. Both are told in
  [docs/front_ends.md](../../docs/front_ends.md).
- *DataRace*: test_exception.py's threads all update one array, on purpose; test_cooperative_groups.py's barrier is
  initialised by one thread and used by the others with no `__syncthreads()` between.
- test_cuda_array_interface.py counts calls of a stream's `synchronize`, and asks for a memory manager: every stream is
  in order here, and there is no driver. test_large_smem.py asks the driver for the most shared memory,
  test_extending.py links archives and machine code. What fails of test_inlining.py looks at a dump of the compiler, and
  runs no kernel.
""",
    "triton-tests": """What does not pass, read in the code; results.json has the messages:

- *DataRace*: Triton loads a scalar in every warp and stores it in one thread, with no barrier between the two, so that
  a warp may load what the other has stored already. Where the values decide nothing else that is harmless on a GPU.
  `tl.debug_barrier()` between load and store orders them.
- *NotImplementedError*, *failed* (an assertion at compile time): Triton refuses; the tests are of another version.
- *AssertionError*: the sum is right; the test looks for its instruction in PTX as another version spells it.
- *KeyError*: the test reads the machine code, which is not there.
- *RuntimeError*: torch without CUDA; see `torch_on_cpu`.
""",
}


def totals(results: dict[str, Any]) -> dict[str, Any]:
    """Return how many programs of all groups have which outcome."""
    counts = Counter(row["outcome"] for group in results["groups"].values() for row in group["rows"].values())
    return {"benchmark": "front ends", **counts, "versions": results["versions"]}


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(results["versions"].items()))
    lines = [HEAD.format(versions=versions)]
    for group, title in TITLES.items():
        if group not in results["groups"]:
            continue
        of = results["groups"][group]
        source = f", at {of['commit']}" if of.get("commit") else ""
        lines += [f"## {title}", "", f"On {of['date']}{source}.", ""]
        lines += ["| program | outcome | launches | kernels | |", "| --- | --- | ---: | --- | --- |"]
        for name, row in of["rows"].items():
            kernels = ", ".join(f"`{kernel}`" for kernel in row.get("kernels", ())[:6])
            note = row.get("note", "").replace("|", "/")
            lines.append(f"| {name} | {row['outcome']} | {row.get('launches') or ''} | {kernels} | {note} |")
        told = READ.get(group, "")
        if group == "mlir-tests":
            told = told.format(done=len(of["rows"]), wanted=len(on_mlir.FILES), seconds=on_mlir.FILE_SECONDS)
        lines += ["", told] if told else [""]
    return "\n".join(lines).rstrip() + "\n"
