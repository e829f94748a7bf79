"""PTX kernels of one matrix instruction each, on raw registers, and their inputs (`evidence.simulator.record_matrix`).

Inputs come from bits of PCG64, whose stream NumPy guarantees, so that only results need to be kept.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from warplab.simulator.ptx.fragments import BITS, mma_fragment, parse_shape, wmma_fragment

WARPS = 4  # of each product: two with numbers near 1, one with all sizes and zeros, one with any bits
MMA = [
    *((shape, (d, "f16", "f16", d)) for shape in ("m16n8k8", "m16n8k16") for d in ("f16", "f32")),
    *((shape, ("f32", "bf16", "bf16", "f32")) for shape in ("m16n8k8", "m16n8k16")),
    *((shape, ("f32", "tf32", "tf32", "f32")) for shape in ("m16n8k4", "m16n8k8")),
    *((shape, ("f64",) * 4) for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *(
        (shape, ("s32", a, b, "s32"))
        for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
        for a, b in (("s8", "s8"), ("u8", "s8"), ("u8", "u8"))
    ),
    *(
        ("m16n8k32", (d, a, b, d))
        for d in ("f32", "f16")
        for a, b in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"))
    ),
    ("m16n8k16", ("f32", "e4m3", "e4m3", "f32")),
    *(
        (shape, ("s32", a, b, "s32"))
        for shape in ("m8n8k32", "m16n8k32", "m16n8k64")
        for a, b in (("s4", "s4"), ("u4", "s4"), ("u4", "u4"))
    ),
]
SINGLE_BIT = ("m8n8k128", "m16n8k128", "m16n8k256")
SPARSE = [  # shape, types, how many selectors there are
    *(("m16n8k16", kinds, 4) for kinds in (("f16",) * 4, ("f32", "f16", "f16", "f32"), ("f32", "bf16", "bf16", "f32"))),
    *(("m16n8k32", kinds, 2) for kinds in (("f16",) * 4, ("f32", "f16", "f16", "f32"), ("f32", "bf16", "bf16", "f32"))),
    ("m16n8k8", ("f32", "tf32", "tf32", "f32"), 4),
    ("m16n8k16", ("f32", "tf32", "tf32", "f32"), 2),
    *(("m16n8k32", ("s32", a, b, "s32"), 2) for a, b in (("s8", "s8"), ("u8", "s8"))),
    *(("m16n8k64", ("s32", a, b, "s32"), 1) for a, b in (("s8", "s8"), ("u8", "s8"))),
    ("m16n8k64", ("s32", "s4", "u4", "s32"), 2),
    ("m16n8k128", ("s32", "s4", "s4", "s32"), 1),
    *(("m16n8k64", ("f32", a, b, "f32"), 1) for a, b in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"))),
]
_ASCENDING = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint64)  # which two of four are there
WMMA = [
    *(
        (shape, kinds)
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for kinds in (
            ("f16", "f16", "f16", "f16"),
            ("f32", "f16", "f16", "f32"),
            ("f32", "f16", "f16", "f16"),
            ("f16", "f16", "f16", "f32"),
            ("f32", "bf16", "bf16", "f32"),
            ("s32", "s8", "s8", "s32"),
            ("s32", "u8", "u8", "s32"),
        )
    ),
    ("m16n16k8", ("f32", "tf32", "tf32", "f32")),
    ("m8n8k4", ("f64",) * 4),
    ("m8n8k32", ("s32", "s4", "s4", "s32")),
    ("m8n8k32", ("s32", "u4", "u4", "s32")),
]
SMALL = {"s4": "m8n8k32", "u4": "m8n8k32", "b1": "m8n8k128"}  # types that share a byte
REGISTER = {"f32": "f32", "f64": "f64"}  # others are b32


@dataclass(frozen=True)
class Case:
    """`inputs`: arrays of the bytes of the kernel's pointers but the last; `size`: bytes of the output."""

    name: str
    ptx: str
    grid: int
    inputs: tuple[np.ndarray, ...]
    size: int


def bits(seed: str, n: int) -> np.ndarray:
    """`n` random uint64."""
    return np.random.PCG64(zlib.crc32(seed.encode())).random_raw(n)


FORMATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "f64": (11, 52)}
FORMATS |= {"e4m3": (4, 3), "e5m2": (5, 2)}


def numbers(kind: str, n: int, style: str, seed: str) -> np.ndarray:
    """Bits of `n` numbers: style "near" (1/16 to 4), "wide" (all exponents but the last few, half zeros) or "any"."""
    if BITS[kind] < 8:
        return bits(f"{seed} {kind} {style}", n * BITS[kind] // 8).astype(np.uint8)
    raw, dtype = bits(f"{seed} {kind} {style}", 2 * n), f"u{BITS[kind] // 8}"
    if kind not in FORMATS:
        small = kind == "s32" and style != "any"
        return (raw[:n] % 2001 - 1000 if small else raw[:n]).astype(dtype)
    if style == "any":
        return raw[:n].astype(dtype)
    exponent_bits, fraction_bits = FORMATS[kind]
    bias, draw = (1 << exponent_bits - 1) - 1, (raw[n:] >> np.uint64(8)).astype(np.int64)
    exponent = bias - 4 + draw % 6 if style == "near" else draw % (bias + min(bias - 3, 20))
    if style == "wide" and bias > 100:  # products must stay within f32
        exponent = bias - 25 + draw % 50
    number = raw[:n] >> np.uint64(64 - fraction_bits) | exponent.astype(np.uint64) << np.uint64(fraction_bits)
    number |= (raw[n:] >> np.uint64(1) & np.uint64(1)) << np.uint64(exponent_bits + fraction_bits)
    if style == "wide":
        number *= raw[n:] >> np.uint64(2) & np.uint64(1)
    return number.astype(dtype)


def _registers(kind: str, elements: int) -> int:
    return max(1, elements * BITS[kind] // (64 if kind == "f64" else 32))


def _kernel(name: str, parameters: tuple[str, ...], declare: str, body: str) -> str:
    """%i is the thread's number in the grid, %r<name> the pointer of each parameter."""
    loads = "\n".join(f"    ld.param.u64 %r{p}, [{name}_{p}];" for p in parameters)
    return f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry {name}({", ".join(f".param .u64 {name}_{p}" for p in parameters)})
{{
    .reg .b32 %i, %t, %address;
    .reg .b64 %at, {", ".join(f"%r{p}" for p in parameters)};
    {declare}
    mov.u32 %t, %ctaid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %t, 32, %i;
{loads}
{body}
    ret;
}}
"""


def _transfer(opcode: str, pointer: str, kind: str, count: int, register: str) -> str:
    """Each thread's `count` registers from or to memory, one thread after another."""
    kind = REGISTER.get(kind, "b32")
    size = 8 if kind == "f64" else 4
    lines = [f"    mad.wide.u32 %at, %i, {count * size}, %r{pointer};"]
    for k in range(count):
        operands = [f"%{register}{k}", f"[%at+{k * size}]"]
        lines.append(f"    {opcode}.global.{kind} {', '.join(operands if opcode == 'ld' else reversed(operands))};")
    return "\n".join(lines)


def _group(register: str, count: int) -> str:
    return "{" + ", ".join(f"%{register}{k}" for k in range(count)) + "}"


def metadata(kind: str, name: str) -> np.ndarray:
    """A register for each lane, uint32, that says which elements of a sparse A are there."""
    choice = bits(f"{name} metadata", 32 * WARPS * 8).reshape(-1, 8)
    nibbles = np.where(choice % 2, 0b1110, 0b0100) if kind == "tf32" else _ASCENDING[choice % 6]
    return (nibbles.astype(np.uint64) << np.arange(0, 32, 4, dtype=np.uint64)).sum(axis=1).astype(np.uint32)


def _product(name: str, instruction: str, kinds, counts, selector: int | None = None) -> Case:
    """D = A·B + C; `kinds` and `counts` (registers) of A, B, C, D. `selector`: of a sparse A."""
    declare = " ".join(
        f".reg .{REGISTER.get(kind, 'b32')} %{o}<{count}>;"
        for o, kind, count in zip("abcd", kinds, counts, strict=True)
    )
    body = [_transfer("ld", o, kind, count, o) for o, kind, count in zip("abc", kinds, counts, strict=False)]
    a, b, c, d = (_group(o, count) for o, count in zip("abcd", counts, strict=True))
    parameters, more = tuple("abcd"), ""
    if selector is not None:
        parameters, more = ("a", "b", "c", "e", "d"), f", %e0, {selector}"
        declare += " .reg .b32 %e<1>;"
        body.append(_transfer("ld", "e", "b32", 1, "e"))
    body += [f"    {instruction} {d}, {a}, {b}, {c}{more};", _transfer("st", "d", kinds[3], counts[3], "d")]
    styles = ("near", "near", "wide", "any")[:WARPS]
    inputs = []
    for operand, kind, count in zip("abc", kinds, counts, strict=False):
        n = 32 * count * (64 if kind == "f64" else 32) // BITS[kind]
        parts = [numbers(kind, n, style, f"{name} {operand} {k}") for k, style in enumerate(styles)]
        inputs.append(np.concatenate(parts).view(np.uint8))
    if selector is not None:
        inputs.append(metadata(kinds[0], name).view(np.uint8))
    size = WARPS * 32 * counts[3] * (8 if kinds[3] == "f64" else 4)
    return Case(name, _kernel(name, parameters, declare, "\n".join(body)), WARPS, tuple(inputs), size)


def mma_cases() -> list[Case]:
    cases = []
    for shape, (d, a, b, c) in MMA:
        kinds = (a, b, c, d)
        counts = [_registers(k, mma_fragment(shape, o, k).row.shape[1]) for o, k in zip("abcd", kinds, strict=True)]
        name = f"mma_{shape}_{d}_{a}_{b}_{c}"
        cases.append(_product(name, f"mma.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{c}", kinds, counts))
    cases += [*single_bit_cases(), *sparse_cases()]
    name = "mma_m16n8k32_satfinite"
    kinds = ("s8", "s8", "s32", "s32")
    cases.append(_product(name, "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", kinds, (4, 2, 4, 4)))
    for layouts in ("row.row", "row.col", "col.row", "col.col"):
        for d in ("f16", "f32"):
            name, count = f"mma_m8n8k4_{layouts.replace('.', '_')}_{d}", {"f16": 4, "f32": 8}[d]
            instruction = f"mma.sync.aligned.m8n8k4.{layouts}.{d}.f16.f16.{d}"
            cases.append(_product(name, instruction, ("f16", "f16", d, d), (2, 2, count, count)))
    return cases


def single_bit_cases() -> list[Case]:
    kinds, cases = ("b1", "b1", "s32", "s32"), []
    for shape in SINGLE_BIT:
        counts = [_registers(k, mma_fragment(shape, o, k).row.shape[1]) for o, k in zip("abcd", kinds, strict=True)]
        for operation in ("xor", "and"):
            instruction = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
            cases.append(_product(f"mma_{shape}_b1_{operation}", instruction, kinds, counts))
    return cases


def sparse_cases() -> list[Case]:
    cases = []
    for shape, (d, a, b, c), selectors in SPARSE:
        kinds, (m, n, k) = (a, b, c, d), parse_shape(shape)
        shapes = f"m{m}n{n}k{k // 2}", shape, shape, shape
        counts = [
            _registers(kind, mma_fragment(of, o, kind).row.shape[1])
            for of, o, kind in zip(shapes, "abcd", kinds, strict=True)
        ]
        instruction = f"mma.sp.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{c}"
        for selector in range(selectors):
            name = f"mma_sp_{shape}_{d}_{a}_{b}_{c}_{selector}"
            cases.append(_product(name, instruction, kinds, counts, selector))
    return cases


def wmma_cases() -> list[Case]:
    cases = []
    for shape, (d, a, b, c) in WMMA:
        kinds = (a, b, c, d)
        counts = [_registers(k, wmma_fragment(shape, o, k).row.shape[1]) for o, k in zip("abcd", kinds, strict=True)]
        types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
        end = ".rn" if a == "f64" else ""
        name = f"wmma_{shape}_{d}_{a}_{b}_{c}"
        cases.append(_product(name, f"wmma.mma.sync.aligned.row.col.{shape}.{types}{end}", kinds, counts))
    kinds = ("b1", "b1", "s32", "s32")
    for operation in ("xor", "and"):
        instruction = f"wmma.mma.{operation}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"
        cases.append(_product(f"wmma_m8n8k128_b1_{operation}", instruction, kinds, (1, 1, 2, 2)))
    return cases


def transfer_cases() -> list[Case]:
    """wmma.load of matrices that hold 0, 1, 2, …, and wmma.store of registers that do, in both layouts."""
    forms = dict.fromkeys(
        (shape, operand, kind)
        for shape, (d, a, b, c) in WMMA
        for operand, kind in (("a", a), ("b", b), ("c", c), ("d", d))
    )
    loads = [_words_case(shape, operand, kind) for kind, shape in SMALL.items() for operand in "ab"]
    whole = [form for form in forms if form[2] not in SMALL]
    return [*(_transfer_case(*form, layout) for form in whole for layout in ("row", "col")), *loads]


def _words_case(shape: str, operand: str, kind: str) -> Case:
    """wmma.load of types that share a byte: lanes hold whole words of 8 rows (columns of B)."""
    layout, name = "row" if operand == "a" else "col", f"wmma_load_{shape}_{operand}_{kind}"
    stride = parse_shape(shape).k + 128  # elements
    memory = np.arange(8 * stride * BITS[kind] // 32, dtype=np.uint32).view(np.uint8)
    body = f"    wmma.load.{operand}.sync.aligned.{layout}.{shape}.global.{kind} {{%d0}}, [%rm], {stride};\n"
    body += _transfer("st", "d", kind, 1, "d")
    return Case(name, _kernel(name, ("m", "d"), ".reg .b32 %d<1>;", body), 1, (memory,), 128)


def _transfer_case(shape: str, operand: str, kind: str, layout: str) -> Case:
    fragment = wmma_fragment(shape, operand, kind)
    count = _registers(kind, fragment.row.shape[1])
    outer, inner = (fragment.rows, fragment.columns) if layout == "row" else (fragment.columns, fragment.rows)
    item = BITS[kind] // 8
    stride = inner + 16  # elements
    register, wide = REGISTER.get(kind, "b32"), 8 if kind == "f64" else 4
    memory = np.arange(outer * stride).astype(f"u{item}").view(np.uint8)
    declare = f".reg .{register} %d<{count}>;"
    name = f"wmma_{'store' if operand == 'd' else 'load'}_{shape}_{operand}_{kind}_{layout}"
    head = f"    wmma.{{}}.{operand}.sync.aligned.{layout}.{shape}.global.{kind} "
    if operand == "d":
        body = _transfer("ld", "m", kind, count, "d")
        body += "\n" + head.format("store") + f"[%rd], {_group('d', count)}, {stride};"
        held = np.arange(32 * count * wide // item).astype(f"u{item}").view(np.uint8)
        return Case(name, _kernel(name, ("m", "d"), declare, body), 1, (held,), memory.nbytes)
    body = head.format("load") + f"{_group('d', count)}, [%rm], {stride};\n"
    body += _transfer("st", "d", kind, count, "d")
    return Case(name, _kernel(name, ("m", "d"), declare, body), 1, (memory,), 32 * count * wide)


def row_cases() -> list[Case]:
    """ldmatrix and stmatrix: thread i owns 16 bytes of shared memory, at place 5·i modulo 32."""
    cases = []
    for count in (1, 2, 4):
        for transposed in ("", ".trans"):
            cases += [_row_case("load", count, transposed), _row_case("store", count, transposed)]
    return cases


def _row_case(op: str, count: int, transposed: str) -> Case:
    name = f"{op[:2]}matrix_x{count}{transposed.replace('.', '_')}"
    declare = ".shared .align 16 .b8 tile[512];\n    .reg .b32 %d<4>, %m<4>, %own;"
    form = f"matrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16"
    owned = ", ".join(f"[%own+{4 * k}]" for k in range(4)).split(", ")
    lines = [
        "    mov.u32 %own, tile;",
        "    mul.lo.u32 %t, %i, 5;",
        "    and.b32 %t, %t, 31;",
        "    mad.lo.u32 %address, %t, 16, %own;",
        "    mad.lo.u32 %own, %i, 16, %own;",
        _transfer("ld", "m", "b32", 4, "m"),
        *(f"    st.shared.b32 {place}, %m{k};" for k, place in enumerate(owned)),
        "    bar.sync 0;",
    ]
    if op == "load":
        lines += [*(f"    mov.u32 %d{k}, 0;" for k in range(4)), f"    ld{form} {_group('d', count)}, [%address];"]
    else:
        lines += [
            f"    st{form} [%address], {_group('m', count)};",
            "    bar.sync 0;",
            *(f"    ld.shared.b32 %d{k}, {place};" for k, place in enumerate(owned)),
        ]
    lines.append(_transfer("st", "d", "b32", 4, "d"))
    memory = np.arange(256, dtype=np.uint16).view(np.uint8)
    return Case(name, _kernel(name, ("m", "d"), declare, "\n".join(lines)), 1, (memory,), 512)


def cases() -> list[Case]:
    return [*mma_cases(), *wmma_cases(), *transfer_cases(), *row_cases()]
