"""docs/machine_counts.md: how machine instructions are counted without a GPU, how far that is from ncu, and where it
fails."""

from __future__ import annotations

from tools import machine_code
from tools.machine_code import CELLS, HEADER, Row
from warplab.text.tables import markdown

SHOWN = 0.005  # launches that are farther off are listed by themselves
_TEXT = """\
# Machine instructions: Nsight Compute and the machine code

<!-- Written by `make compare-machine-code`; do not edit. -->

`warplab.machine_counts(launch)` says how often each instruction of a kernel's machine code
(SASS) ran in a launch, by warp and by thread, and on which pipe of an SM. It needs no GPU. `profile()` keeps the
counters that it has, which estimate instructions from PTX and by which exercises grade.

## How

1. The simulator runs PTX. It counts how often each basic block ran, by thread and by warp, where its branches went, and
   how many threads went round each loop how often (`warplab/simulator/count/block_flow.py`).
2. The same PTX gets a source line of its own for every instruction (`.loc`), and `ptxas` of CUDA 13.0 assembles it
   (`warplab/compile/machine_lines.py`). Lines change nothing in the code. `nvdisasm` then says of each machine
   instruction which PTX instruction it comes from.
3. The machine code is cut into blocks, with its edges (`machine_blocks.py`). A linear program finds how many threads
   ran each block: threads are conserved in every block, and the sum of what the instructions' counts are off is least,
   weighed by how sure it is that `ptxas` leaves them where they are (`block_counts.py`). Stores, barriers and atomics
   stay, loads and products of matrices mostly, arithmetic often, integers least.
4. A loop that `ptxas` has unrolled has its instructions in several blocks: as many trips as fit go through the block
   that holds most of them, and so on down to one. The trips of each thread are known, so this is no guess.
5. Warps: threads by what a warp had of them in the PTX block that a block is from. Lanes that have come apart meet at a
   `BSYNC` (or `WARPSYNC`) alone: code that they reach before it, warps run once for each part, and the `BSYNC`, too.
   Behind it are as many warps as before its `BSSY`.
6. Two branches of the PTX that are one in machine code (`a && b`) count as one. A function that is called runs once for
   each call.
7. Branches: ncu counts every jump, also unconditional ones and those for warps that have come apart (`BRA.DIV`, behind
   shuffles), once per warp; exits under a predicate are none.

Is it the code that ran under ncu? Kernels of CuPy were compiled with `-ftz=true`, which CuPy gives NVRTC for every
kernel, and so does the simulator since 2026-11-23. Before, 28 launches of labs 06, 08 and 09 were off by up to 11.5 %:
another exponential, another division. On the machine with the H100 (driver 580.159.04) CuPy 14.2 loads NVRTC 13.0.88
and ptxas is 13.0.88, as here, and the options were read there. NVRTC's own assembler and ptxas make the same of the
kernels in `tests/compile/test_machine_lines.py`. The code that numba-cuda 0.30.4 loads was read there, too: of two
kernels of three it is what ptxas makes, instruction for instruction; nvJitLink makes half as many of one.

Per instruction, as `ncu`'s source page lists them, 14 launches of labs were compared on 2026-11-23: in eight of them
every instruction ran as often as counted here, in the others the causes are those below. Totals of eight small kernels
are in `tests/support/counted_kernels.py`.

## Where it fails

- **Ways for rare arguments** of divisions, roots and double precision count as never taken: which arguments a thread
  has is not recorded. Mandelbrot divides by 0 once per lane, and the global average of int8 divides 0 by a number of
  pixels.
- **Lanes of a warp that differ in their trips** round a loop that is unrolled further (sparse rows, row sums by
  thread): how many warps run what is left over, and in how many parts they come to the `BSYNC`, follows from the mean
  of the threads.
- **Lanes that come back from a call in parts** are counted as if they came back together.
- **The order of warps** decides how often a compare-and-swap repeats and how a queue is shared out; two runs on one GPU
  differ, too.
- **Code in which nothing but arithmetic** tells how often it ran, since that moves.
- **Numba's direct convolution** ran in other code on the GPU: 1,369 instructions with 54 branches, where ptxas and
  nvJitLink 13.0.88 make 1,392 and 1,200 with 50 of the same PTX. What assembled it there was not found.
- **Other cards** than the H100: nothing was compared. The PTX is that for compute capability 9.0, and is assembled for
  the card's own; what a card lacks is refused.

## Summary
"""


def page() -> str:
    """The page, from machine_counts.json."""
    about, rows = machine_code.load()
    topics = list(dict.fromkeys(row.topic for row in rows))
    parts = [_TEXT.rstrip(), f"Machine code: {about['ptxas']}, {about['date']}. Launches:"]
    parts.append("\n".join(f"- {topic}: {about['ncu'][topic]}" for topic in topics))
    parts.append(markdown(HEADER, machine_code.summaries(rows)))
    far = sorted((row for row in rows if abs(row.off("machine")) > SHOWN), key=lambda row: -abs(row.off("machine")))
    parts.append(f"## Farther off than {100 * SHOWN:.1f} %")
    parts.append(_table(far, with_topic=True) if far else "None.")
    parts.append("## All launches")
    for topic in topics:
        own = [row for row in rows if row.topic == topic]
        parts.append(f"<details><summary>{topic}: {len(own)} launches</summary>\n\n{_table(own)}\n\n</details>")
    return "\n\n".join(parts) + "\n"


def _table(rows: list[Row], with_topic: bool = False) -> str:
    body = [(f"{row.topic}: {row.launch}" if with_topic else row.launch, *machine_code.cells(row)[1:]) for row in rows]
    return markdown(CELLS, body, numbers=True)
