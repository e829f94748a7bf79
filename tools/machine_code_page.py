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
5. Warps: threads by what a warp had of them in the PTX block that a block is from. Lanes that meet (`BSYNC`) execute
   that instruction part by part, as they come.
6. Branches: ncu counts every jump, also unconditional ones and those for warps that have come apart (`BRA.DIV`, behind
   shuffles), once per warp; exits under a predicate are none.

Is it the code that ran under ncu? NVRTC's own assembler and this `ptxas`, both 13.0.88, make the same of the kernels in
`tests/compile/test_machine_lines.py`. Numba's kernels come out exactly only with `ptxas`: nvJitLink, which assembles
code to be linked, makes others of kernels with shared memory. The versions on the machine with the GPU were not
recorded, but that it was CUDA 13.0; a launch whose instructions are off while its branches and lanes agree may have run
other code.

## Where it fails

- **Ways for rare arguments** of divisions, roots and double precision count as never taken: which arguments a thread
  has is not recorded. Mandelbrot divides by 0 once per lane.
- **Loops that are unrolled further while lanes of a warp differ in their trips**: how many warps run what is left over
  follows from the mean of the threads.
- **The order of warps** decides how often a compare-and-swap repeats and how a queue is shared out; two runs on one GPU
  differ, too.
- **Code in which nothing but arithmetic** tells how often it ran, since that moves.
- **Unknown**: some launches of lab 06's layers are off by up to a tenth, and some of lab 08 by 2 to 3 % although
  branches and active lanes agree there. The cause was not found.
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
