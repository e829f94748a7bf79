"""Write instructions.md, the PTX instructions that the simulator knows: `python -m evidence.simulator.instructions`.

They come from the simulator's tables and from the cases of tests/support/instruction_cases.py, whose results on a GPU
the simulator reproduces bit for bit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.support.instruction_cases import cases
from tests.support.matrix_cases import cases as matrix_cases
from tests.support.recorded import RECORDED
from warplab import simulator
from warplab.simulator.translate import operations
from warplab.simulator.translate.operations import atomics, comparisons
from warplab.text.tables import markdown

PAGE = Path(__file__).with_name("instructions.md")

TYPE = re.compile(r"pred|(?:[bsu]|f|bf|tf|e)\d+(?:x\d|m\d)*(?:x\d)?")
# What the simulator turns calls and parameters into.
NOT_PTX = {"argument", "enter", "inlined", "invalid", "assertfail", "vprintf", "malloc", "free", "gridhandle"}
_NEED_RESULT = ("exch", "cas")  # there is no `red` of these
_HINT = "accepted; changes nothing that the simulator computes"
NOTES = {
    "bar": "sync, arrive, red, with numbers and counts; bar.warp.sync",
    "barrier": "as `bar`; barrier.cluster",
    "brx": "idx",
    "clusterlaunchcontrol": "try_cancel, query_cancel; no block is ever cancelled, as all of a grid run",
    "call": "device functions, inlined or, if they call themselves, on a stack, by name or pointer; vprintf, "
    "__assertfail, malloc, free",
    "cp": "async (4, 8, 16 bytes), its groups and mbarriers; async.bulk, also from block to block, multicast, and "
    "with reductions; async.bulk.tensor: 1d to 5d, tile and im2col, swizzles of 32, 64 and 128 bytes, "
    "multicast, stores, reductions",
    "ld": "b8 to b128, u, s and f types, vectors of 2, 4 and 8; all state spaces and generic addresses; cache "
    "operators",
    "ldmatrix": "x1, x2, x4, with and without .trans",
    "ldu": "as `ld`",
    "match": "any, all",
    "movmatrix": "m8n8.trans",
    "redux": "add, min, max, and, or, xor; min and max of float32, .abs, .NaN",
    "setmaxnreg": "accepted for targets such as sm_90a; changes nothing that the simulator computes",
    "setp": "comparisons " + ", ".join(comparisons.COMPARISONS),
    "shfl": "up, down, bfly, idx",
    "st": "as `ld`; st.async, st.bulk",
    "stmatrix": "x1, x2, x4, with and without .trans",
    "suld": "unformatted (.b): 1d, 2d, 3d, a1d, a2d; trap, clamp, zero",
    "suq": "width, height, depth, array_size",
    "sust": "as `suld`, and formatted (.p)",
    "tex": "1d, 2d, 3d, a1d, a2d, cube, acube; base, level, grad of textures with one level; by texture objects",
    "tld4": "2d, a2d",
    "txq": "width, height, depth, array_size, normalized_coords; one level, one sample",
    "tcgen05": "alloc, dealloc, relinquish_alloc_permit, ld, st, wait, fence, commit, cp, shift; mma of f16, tf32, "
    "f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4; cta_group::1 and ::2; held to no GPU",
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
    "tcgen05.mma.sp": "tcgen05.mma.sp.cta_group::1.kind::f16 [%t], %rd1, %rd1, [%t], %t, %p;",
    "ldmatrix.m16n16": "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%t, %t}, [%t];",
    "stmatrix.m16n8": "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%t], {%t};",
    "cvt.rs": "cvt.rs.f16x2.f32 %t, %t, %t, %t;",
    "mma.kind": "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 "
    "{%t, %t, %t, %t}, {%t, %t, %t, %t}, {%t, %t}, {%t, %t, %t, %t}, %t, {0, 0}, %t, {0, 0};",
    "tcgen05.mma.ws with a mask": "tcgen05.mma.ws.cta_group::1.kind::f16 [%t], %rd1, %rd1, %t, %p, %rd1;",
    "tcgen05.ld.red": "tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32 {%t, %t}, %t, [%t];",
    "cp.async.bulk.cp_mask": "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%t], 16, %t;",
    "tcgen05.cp.b8x16": "tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%t], %rd1;",
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%t], %t, [%t];",
    "red.async": "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%t], %t, [%t];",
    "multimem": "multimem.red.relaxed.sys.global.add.u32 [%rd1], %t;",
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
# Whose inline assembly has them: every statement of CUDA 13.0's headers, of libcu++ (cuda::ptx) and of CUTLASS at
# 7107b0553 was tried on 2026-11-26. What is not named here was seen in none.
WRITERS = {
    "wgmma.mma_async.sp": "CUTLASS",
    "cp.async.bulk.tensor.gather4": "CUTLASS, libcu++",
    "cp.async.bulk.cp_mask": "libcu++",
    "tcgen05.mma.sp": "CUTLASS",
    "tcgen05.mma.ws with a mask": "libcu++",
    "tcgen05.cp.b8x16": "libcu++",
    "tcgen05.ld.red": "CUTLASS, for sm_103a",
    "ldmatrix.m16n16": "CUTLASS",
    "mma.kind": "CUTLASS, for sm_120a",
    "multimem": "libcu++, for several GPUs",
}
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


def page() -> str:
    """Return the whole page, Markdown."""
    parts = [
        "# PTX instructions that the simulator knows",
        "<!-- Written by `python -m evidence.simulator.instructions`; do not edit. -->",
        "PTX writes the types and modifiers of an instruction after its name, as in `add.rn.f32`. The last column says "
        "how many such combinations are compared, on edge cases and random values, with results recorded on an "
        f"{_recorded_on()} (`tests/warplab/simulator/run/test_instructions.py`, "
        "`tests/warplab/simulator/run/test_matrix_operations.py`); types and modifiers are those of these combinations "
        "and of the simulator's tables.",
        *_supported(),
        "## Refused by name",
        "A kernel that contains one of these is refused before it runs, with an `UnsupportedInstruction` that names "
        "the line. So are dynamic parallelism and arrays of a size known only at run time (`alloca`).",
        markdown(["instruction", "tried as", "who writes it", "what the message adds"], _refused()),
        "Who writes it: inline assembly of CUDA 13.0's headers, of libcu++ and of CUTLASS, each statement of which was "
        "tried (2026-11-26). None has those without a name.",
    ]
    return "\n\n".join(parts) + "\n"


def _recorded_on() -> str:
    device = json.loads((RECORDED / "instructions.json").read_text())["device"]
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
        yield f"## {kind[0].upper()}{kind[1:]}"
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
        yield [f"`{name}`", f"`{tried}`", WRITERS.get(name, ""), reason]


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
