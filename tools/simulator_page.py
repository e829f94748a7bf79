"""Write docs/simulator.md: what the simulator is, what it catches, how fast it is, which PTX instructions it knows.

    python -m tools.simulator_page            write the page from the code, with the speeds measured last
    python -m tools.simulator_page --measure  measure the speeds first (make bench-simulator; some minutes)

The messages come from running the kernels of tests/support/defects.py, the instructions from the simulator's tables and
from the cases of tests/support/instruction_cases.py, whose results on a GPU the simulator reproduces bit for bit.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from tests.support import defects_numba
from tests.support.defects import DEFECTS
from tests.support.instruction_cases import cases
from tests.support.matrix_cases import cases as matrix_cases
from tools import simulator_speed
from tools.record_matrix import RECORDED
from tools.simulator_first_steps import first_steps
from warplab import simulator
from warplab.paths import COURSE
from warplab.simulator.translate import operations
from warplab.simulator.translate.operations import atomics, comparisons
from warplab.text.tables import markdown

PAGE = COURSE / "docs" / "simulator.md"
SPEED = COURSE / "docs" / "simulator_speed.json"

TYPE = re.compile(r"pred|(?:[bsu]|f|bf|tf|e)\d+(?:x\d|m\d)*(?:x\d)?")
# What the simulator turns calls and parameters into.
NOT_PTX = {"argument", "enter", "inlined", "invalid", "assertfail", "vprintf", "malloc", "free", "gridhandle"}
_NEED_RESULT = ("exch", "cas")  # there is no `red` of these
_HINT = "accepted; changes nothing that the simulator computes"
NOTES = {
    "bar": "sync, arrive, red, with numbers and counts; bar.warp.sync",
    "barrier": "as `bar`; barrier.cluster",
    "brx": "idx",
    "call": "device functions, inlined or, if they call themselves, on a stack, by name or pointer; vprintf, "
    "__assertfail, malloc, free",
    "cp": "async (4, 8, 16 bytes), its groups and mbarriers; async.bulk, also from block to block, multicast, and "
    "with reductions; async.bulk.tensor: 1d to 5d, tile and im2col, swizzles of 32, 64 and 128 bytes, "
    "multicast, stores, reductions",
    "ld": "b8 to b128, u, s and f types, vectors of 2 and 4; all state spaces and generic addresses; cache operators",
    "ldmatrix": "x1, x2, x4, with and without .trans",
    "ldu": "as `ld`",
    "match": "any, all",
    "redux": "add, min, max, and, or, xor",
    "setmaxnreg": "accepted for targets such as sm_90a; changes nothing that the simulator computes",
    "setp": "comparisons " + ", ".join(comparisons.COMPARISONS),
    "shfl": "up, down, bfly, idx",
    "st": "as `ld`; st.async",
    "stmatrix": "x1, x2, x4, with and without .trans",
    "suld": "unformatted (.b): 1d, 2d, 3d, a1d, a2d; trap, clamp, zero",
    "suq": "width, height, depth, array_size",
    "sust": "as `suld`, and formatted (.p)",
    "tex": "1d, 2d, 3d, a1d, a2d, cube, acube; base, level, grad of textures with one level; by texture objects",
    "tld4": "2d, a2d",
    "txq": "width, height, depth, array_size, normalized_coords; one level, one sample",
    "vote": "all, any, uni, ballot",
    "wgmma": "fence, commit_group, wait_group; mma_async of f16, bf16, tf32, e4m3, e5m2, s8, u8, A from registers or "
    "shared memory, all swizzles and layouts",
    **dict.fromkeys(("applypriority", "discard", "griddepcontrol", "pmevent", "prefetch", "prefetchu"), _HINT),
    "createpolicy": _HINT,
}

# Instructions of the PTX ISA that the course's compilers do not emit; each is tried.
TRIED = {
    "wgmma.mma_async.sp": "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%t,%t,%t,%t}, %rd1, %rd1, %t, 0, %p, "
    "1, 1, 0, 0;",
    "cp.async.bulk": "cp.async.bulk.commit_group;",
    "cp.async.bulk.tensor": "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%t], [%rd1, {%t}], [%t];",
    "cp.async.bulk.tensor.gather4": "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4"
    ".mbarrier::complete_tx::bytes [%t], [%rd1, {%t, %t, %t, %t, %t}], [%t];",
    "cp.reduce.async.bulk": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%t], 16;",
    "tensormap.replace": "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd1;",
    "tcgen05": "tcgen05.wait::ld.sync.aligned;",
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%t], %t, [%t];",
    "red.async": "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%t], %t, [%t];",
    "multimem": "multimem.red.relaxed.sys.global.add.u32 [%rd1], %t;",
    "clusterlaunchcontrol": "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %rd1;",
    "tex.2dms": "tex.2dms.v4.f32.s32 {%t, %t, %t, %t}, [%rd1, {%t, %t, %t, %t}];",
    "sured": "sured.b.add.1d.u32.trap [%rd1, {%t}], %t;",
    "vadd": "vadd.u32.u32.u32 %t, %t, %t;",
    "vmad": "vmad.u32.u32.u32 %t, %t, %t, %t;",
    "vset": "vset.u32.u32.eq %t, %t, %t;",
    "alloca": "alloca.u64 %rd1, 16;",
    "stacksave": "stacksave.u64 %rd1;",
    "istypep": "istypep.texref %p, %rd1;",
    "griddepcontrol": "griddepcontrol.wait;",
    "elect": "elect.sync %t|%p, 0xffffffff;",
    "prefetch": "prefetch.global.L2 [%rd1];",
    "discard": "discard.global.L2 [%rd1], 128;",
}
RACES = """\
Races are detected from who touched each word and what orders the two accesses, not from the order in which the
simulator runs the threads. The detector knows barriers of the block, of some of its warps and of the grid,
`__syncwarp`, mbarriers (arrivals come before the waits for their phase), atomic operations and flags in shared memory
with acquire, release or a preceding fence, and fences and releases for global memory. What it does not see:

- A plain load from a location that the same kernel swaps with `atomicCAS` counts as the first guess of a loop, and one
  that only decides whether an atomic operation on its location follows counts as a test of it.
- After a fence or a release in global memory, a write counts as seen by all, whether or not they read a flag first.
- Accesses through `volatile` to global memory count as synchronisation, except to arrays that hold none of the flags
  for which the kernel waits: what flags guard needs a fence. In shared memory, `volatile` excuses the lanes of one
  warp, but never two warps. A volatile load that reads what another lane of its own warp wrote, with no `__syncwarp` in
  between, is reported all the same, as in reductions before 2017. Exempt are kernels with a loop that waits for memory
  (a branch in it depends on what it loads): their volatile words may be flags and what these guard.
  `volatile_orders=False` accepts no such excuse, and the course's checks grade with it.
- `__activemask()` names the lanes that happen to run together, which CUDA does not promise. The checks grade with
  `lanes_apart=True`, where each lane is alone.
- What a shuffle takes from a lane that does not take part, and what a local array holds where nobody wrote, is an error
  only if memory ends up different when another value is put in: the launch runs a second time for that, on up to
  256 MiB of device memory. Where the compiler keeps a local array in registers, nothing of it is left to see.
- A store of the value that is already there counts as harmless: try kernels on data that differ.
- Accesses whose lanes reach into several arrays at once are not followed.
- What some lanes of a warp release, or several of them read, is partly merged. A race may be missed for that reason,
  but none is invented.

Three more rules. A barrier waits for every thread of the block: threads that returned before it are reported, although
a GPU lets the others continue. The same goes for warps: after `if (t >= n) { o[t] = -1; return; }`, a shuffle with the
mask 0xffffffff is an error, since the mask names lanes that take another path and never arrive; let all lanes arrive,
or name those that do. The mask may name lanes that have ended at a mere guard, `if (t >= n) return;`, as PTX does not
wait for lanes that have ended. An index beyond a shared array is out of bounds only where the block's shared memory
ends; an access that falls into another shared array of the block goes unnoticed, as in compute-sanitizer.

Registers that nothing wrote are reported where a matrix instruction reads them: factors and sums of `mma` and
`wmma.mma`, and what `wmma.store` stores. Ordinary arithmetic reads a zero there, as in `float sum; sum += x;`. If a
variable is set on only one path through the kernel, the compiler may assume that it is set on all, and then nothing is
left to report.

The registers of a `wgmma` are its own until a `wgmma.wait_group` has waited for it, and before it uses registers that
something else has accessed there must be a `wgmma.fence`: `UnorderedRegisters` says where either may be violated, by
the ways through the kernel, as `ptxas` does it. What a `wgmma` reads in shared memory counts as read until that wait:
whoever writes there earlier, a copy into the next stage or a thread, races with it. Its descriptors must be the same in
all 128 threads, and name the swizzle of the tensor copy that brought the tile (`WrongDescriptor`). Its arithmetic is
that of a [published model](https://arxiv.org/abs/2511.10909) of an H100; 48 launches with numbers of all kinds gave the
same bits on an H100 80GB HBM3 on 2026-11-23.

Functions that call themselves have a stack of 64 KiB per thread. A GPU gives a thread 1,024 bytes, unless the host asks
for more (`cudaLimitStackSize`): recursion that fits here may fail there.

Copies by TMA (`cp.async.bulk`, with and without a tensor map) write as late as they may, and read shared memory from
their start until `cp.async.bulk.wait_group.read`. Whatever is read before the wait at the mbarrier, or written over a
stage that others still read, is a race or an uninitialised read. Told as well: bytes that do not add up, a block that
ends while copies into or out of its shared memory are under way, misaligned boxes, a missing `fence.proxy.async`
between stores and what TMA or a `wgmma` reads or TMA writes over (`MissingProxyFence`), an mbarrier that others use
with no barrier after its `mbarrier.init`, what a relaxed arrival leaves unordered, and shared memory of another block
of the cluster that is accessed before that block has begun or after it may have ended. Not told: a missing
`fence.proxy.async` in global memory or after `mbarrier.init` (libcu++ has none either), and a wait that is relaxed.
Tensor maps are those of `warplab.bench.hopper`, in an encoding of the simulator's own, with the driver's rules;
interleaved layouts and reductions with FTZ types are refused. TFLOAT32 rounds, and lines shorter than the swizzle lie,
as on an H100. `Options.cluster` is the size of a cluster that a launch asks for. Counters: accesses to other blocks
count as those to shared memory, copies by TMA as their number; neither was compared with `ncu`.

`cub::BlockMergeSort` and `WarpMergeSort` read one element of shared memory that nobody wrote, but do not use it: run
them with `used_reads_only=True`."""
DEVICES = """\
`with warplab.virtual_devices(k) as devices:` gives 1 to 16 simulated GPUs in one address space, on any machine.
`devices[i].asarray(x)` and `.zeros(shape, dtype)` make arrays on a device, `devices[i].launch(kernel, grid, block,
args)` queues a kernel, which may be given arrays of other devices, and `devices.synchronize()` runs all that is
queued: the launches of one device one after another, those of different devices at the same time. Without a GPU the
stand-ins for CuPy and Numba choose a device as on real ones, `with cp.cuda.Device(1):`.

Devices take turns. A kernel that only waits for flags stands aside until one of them changes, and before a kernel sets
a flag, the others run until they wait. `DeviceRace` names both devices, threads and lines, the array, and the cause:
no wait, a missing fence before the flag is set or after it was seen, a fence or a flag of too narrow a scope, an
ordinary variable as a flag, a missing barrier. `DeviceDeadlock` says which threads wait for which flags when nobody
can set these any more. `PeerAccess` refuses an array of a device that is out of reach (`peer_access=False`, or pairs
of devices).

The rules are those of PTX's memory model. The accesses of two devices are in order if the first one's thread, or one
that a barrier joins it to, then passes `__threadfence_system()` and sets a flag, and the second one's thread sees that
flag, then passes `__threadfence_system()`. The flag is `volatile`, or an atomic operation or access with the scope
.sys; `st.release.sys` and `ld.acquire.sys` (`cuda::atomic_ref` with `thread_scope_system`) need no fences. Between
blocks of one device the scope .gpu will do. In Numba a flag takes functions in CUDA C++ (`cuda.declare_device`):
`cuda.atomic` has the scope .gpu, and `cuda.ldcv` in a loop is loaded once. What it does not see:

- Of several threads of a device that wrote or read a word, the latest counts.
- A fence counts on either side of a barrier of its block, by whichever thread. For `__threadfence_system()`
  (`fence.sc.sys`) PTX says so, too; for `fence.acq_rel.sys` the thread that sets or sees the flag must pass it, and
  that is not checked.
- Whatever earlier launches of a device did counts as released: a flag that a later launch sets without a fence is not
  told.
- What is known about the lanes of a warp is merged in part. A race may be missed for that reason, but none is
  invented.
- A loop that counts while it waits is taken for endless after 16,384 instructions without any change, and a clock in
  it does not run faster meanwhile."""
TEMPLATE = """
.version 9.0
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 out)
{{
    .reg .pred %p;
    .reg .b32 %t;
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [out];
    mov.u32 %t, %tid.x;
    {}
    ret;
}}
"""

TEXTURES = """\
Kernels in CUDA C++ fetch from textures and read and write surfaces by the handles of `TextureObject` and
`SurfaceObject` (`cp.cuda.texture`, as in CuPy), which are made of CUDA arrays or of linear or pitched memory. Values
follow the formulas of the CUDA Programming Guide: nearest texel or linear filter with weights of 8 bits, the four
address modes, integers as they are or from 0 or -1 to 1. Texels that nobody wrote are reported, and so are fetches and
surface reads of what the same launch has written (`StaleTexel`), which CUDA leaves undefined.

What CUDA leaves open is done as an H100 was seen to do it on 2026-11-23: weights and their products are rounded to
1/256, filtered integers come in steps of 1/65535 or 1/32767, and an array of one axis with border mode along the second
counts as one of height 1. Fetches from arrays of one and two axes agreed but for a few ties; of volumes some 4 %
differed by 1/256 of a weight, of filtered integers and halves 1 to 5 % by a step (signed 8-bit 19 %). An H100 returned
zeros for fetches of type `.f16`, which CUDA C++ does not write. Not documented are also which channels a fetch finds
beyond those of the texels (here 0, 0, 1), and what is read outside of linear memory or beyond the last layer (here an
error). Only instructions are counted, by kind: the order of texels in memory is not documented, so neither requests nor
sectors can be. There are no mipmaps, no conversion from sRGB, no reductions (`sured`) and no texture references, which
CUDA 12 has removed."""


def page() -> str:
    """The whole page, Markdown."""
    parts = [
        "# The simulator",
        "Written by `python -m tools.simulator_page`; a test holds it to the code.",
        *first_steps(),
        "## Counters against Nsight Compute",
        "`make compare-ncu`, on a machine with a GPU, runs kernels under `ncu` and in the simulator and writes the "
        "table of differences into [counters.md](counters.md).",
        "Requests, sectors, passes and tensor operations of `wmma` count the machine instructions that `ptxas` makes "
        "of its loads, stores and products. In the warp instructions and in the mix each of them counts as one: "
        "a 16 × 16 tile of FP16 loaded from global memory is one warp instruction and four requests. Tensor "
        "operations are not compared there.",
        "## What is caught",
        "The kernels of `tests/support/defects.py`, each with the first line of its message; more lines give the place "
        "and a likely cause. Each has a corrected twin that runs silently, and most are tried in Numba too "
        "(`tests/simulator/check/test_defects.py`).",
        markdown(["mistake", "error", "first line of the message", "in Numba"], _defects()),
        RACES,
        "## Several devices",
        DEVICES,
        "## Textures and surfaces",
        TEXTURES,
        "[public_programs.md](public_programs.md) lists published programs that ran in the simulator, and what was "
        "found in them.",
        "## Speed",
        *_speed(json.loads(SPEED.read_text())),
        "## PTX instructions",
        "PTX writes the types and modifiers of an instruction after its name, as in `add.rn.f32`. The last column says "
        "how many such combinations are compared, on edge cases and random values, with results recorded on an "
        f"{_recorded_on()} (`tests/simulator/run/test_instructions.py`, "
        "`tests/simulator/run/test_matrix_operations.py`); types and modifiers are those of these combinations and of "
        "the simulator's tables.",
        *_supported(),
        "### Refused by name",
        "A kernel that contains one of these is refused before it runs, with an `UnsupportedInstruction` that names "
        "the line. So are dynamic parallelism and arrays of a size known only at run time (`alloca`).",
        markdown(["instruction", "tried as", "what the message adds"], _refused()),
    ]
    return "\n\n".join(parts) + "\n"


def _speed(figures: dict) -> Iterator[str]:
    yield (
        f"`make bench-simulator`, {figures['date']}, {figures['device']}; times of the simulator, not of a GPU. "
        "Numba's own simulator runs each CUDA thread as a Python thread."
    )
    rows = []
    for name in figures["numba_seconds"]:
        row = [simulator_speed.NAMES[name], f"{figures['numba_seconds'][name]:g} s"]
        for mode in figures["seconds"]:
            ratio = figures["ratios"][f"{name}, {mode}"]
            row.append(f"{1e3 * figures['seconds'][mode][name]:.3g} ms, {ratio:,} ×")
        rows.append(row)
    yield markdown(["launch", "Numba's simulator", "checks off", "all checks and counters"], rows)
    rows = [
        [simulator_speed.LABELS[mode], f"{found['seconds']:g} s", f"{found['peak_bytes'] / 2**30:.2f} GiB"]
        for mode, found in figures["large"].items()
    ]
    yield markdown(["tiled 512 × 512 matrix product, 262,144 threads", "time", "peak memory of the process"], rows)
    costs = figures["nanoseconds_a_thread_instruction"]
    sizes = list(next(iter(costs.values())))
    heads = [
        "nanoseconds of processor time per executed thread instruction, by threads",
        *(f"{int(n):,}" for n in sizes),
    ]
    yield markdown(
        heads, [[simulator_speed.LABELS[mode], *(f"{cost[n]:g}" for n in sizes)] for mode, cost in costs.items()]
    )


def _defects() -> Iterator[list[str]]:
    in_numba = {defect.name for defect in defects_numba.DEFECTS}
    for defect in DEFECTS:
        first = re.sub(r"0x[0-9a-f]+", "0x…", defect.message().splitlines()[0])
        yield [defect.name, f"`{defect.error.__name__}`", first, "tried" if defect.name in in_numba else ""]


def _recorded_on() -> str:
    device = json.loads((COURSE / "tests" / "simulator" / "run" / "recorded" / "instructions.json").read_text())[
        "device"
    ]
    return device.removeprefix("NVIDIA ")


def _forms() -> dict[str, set[tuple[str, ...]]]:
    """Forms in the recorded cases, by opcode."""
    forms: dict[str, set[tuple[str, ...]]] = {}
    for case in cases():
        for statement in case.body.split(";"):
            words = re.sub(r"^@!?\S+\s+", "", statement.strip("{} \n\t")).split()
            if words and not words[0].startswith("."):
                opcode, *modifiers = words[0].split(".")
                forms.setdefault(opcode, set()).add(tuple(modifiers))
    return forms


def _supported() -> Iterator[str]:
    forms = _forms()
    opcodes = (set(operations.TABLE) | set(operations.KINDS)) - NOT_PTX
    refused = {name for name, _ in _refused_names()}
    kinds: dict[str, list[str]] = {}
    for opcode in sorted(opcodes - refused):
        kinds.setdefault(operations.KINDS.get(opcode, "arithmetic, logic and comparison"), []).append(opcode)
    for kind in sorted(kinds):
        rows = [[f"`{opcode}`", *_described(opcode, forms.get(opcode, set()))] for opcode in kinds[kind]]
        yield f"### {kind[0].upper()}{kind[1:]}"
        yield markdown(["instruction", "types", "modifiers", "combinations compared"], rows)


def _described(opcode: str, forms: set[tuple[str, ...]]) -> list[str]:
    if opcode in ("atom", "red"):
        known = {name: types for name, types in atomics._KINDS.items() if opcode == "atom" or name not in _NEED_RESULT}
        operations_of = [f"{name} ({', '.join(types)})" for name, types in known.items()]
        return ["", "; ".join((*operations_of, *(["async to shared memory"] if opcode == "red" else []))), ""]
    if opcode in ("mma", "wmma"):
        with np.load(RECORDED / "matrix_h100.npz") as arrays:
            recorded = set(arrays.files)
        known = [case.name for case in matrix_cases() if case.name in recorded]
        names = [name.split("_", 1)[1] for name in known if name.startswith((f"{opcode}_m", f"{opcode}_sp"))]
        shapes: dict[str, list[str]] = {}
        for name in names:
            sparse = name.startswith("sp_")  # the selector follows the types
            shape, *kinds = name.removeprefix("sp_").split("_")[: -1 if sparse else None]
            of_shape = shapes.setdefault("sp." * sparse + shape, [])
            of_shape += [".".join(kinds)] if ".".join(kinds) not in of_shape else []
        return ["", "; ".join(f"{shape}: {', '.join(kinds)}" for shape, kinds in shapes.items()), str(len(names))]
    if not forms:
        return ["", NOTES.get(opcode, ""), ""]
    modifiers = dict.fromkeys(m for form in sorted(forms) for m in form)
    types = [m for m in modifiers if TYPE.fullmatch(m)]
    others = [m for m in modifiers if not TYPE.fullmatch(m)]
    note = NOTES.get(opcode)
    return [" ".join(sorted(types)), note or " ".join(f".{m}" for m in sorted(others)), str(len(forms))]


def _refused_names() -> Iterator[tuple[str, str]]:
    device = simulator.Device(1 << 20)
    for name, body in TRIED.items():
        try:
            program = simulator.load(TEMPLATE.format(body))  # the parser refuses some, the launch others
            address = device.memory.allocate(256)
            device.launch(program.entries["kernel"], (1,), (32,), [address.to_bytes(8, "little")])
        except simulator.UnsupportedInstruction as error:
            yield name, str(error).splitlines()[0]
        except simulator.SimulatorError:  # it is known, and these operands are wrong
            continue


def _refused() -> Iterator[list[str]]:
    for name, message in _refused_names():
        tried = TRIED[name].rsplit("; ", 1)[-1]
        _, _, reason = message.partition(f"`{tried.rstrip(';')}`: ")
        yield [f"`{name}`", f"`{tried}`", reason]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="measure the speeds first")
    if parser.parse_args().measure:
        command = [sys.executable, "-m", "tools.simulator_speed"]
        ran = subprocess.run(command, cwd=COURSE, stdout=subprocess.PIPE, text=True)
        print(ran.stdout)
        SPEED.write_text(json.dumps(json.loads(ran.stdout.splitlines()[-1]), indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
