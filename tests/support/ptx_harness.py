"""Runs a few PTX instructions on arrays: each thread loads its inputs, executes them, stores the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warplab import simulator

REGISTER = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}
NUMPY = {
    "u16": "u2",
    "s16": "i2",
    "b16": "u2",
    "u32": "u4",
    "s32": "i4",
    "b32": "u4",
    "f32": "f4",
    "u64": "u8",
    "s64": "i8",
    "b64": "u8",
    "f64": "f8",
    "f16": "f2",
}


def ptx_of(body: str, input_types: list[str], output_type: str) -> str:
    """A kernel whose threads have inputs in %a, %b, %c and leave the result in %d; %p, %q are predicates."""
    names = "abc"
    lines = []
    for name, kind in zip(names, input_types, strict=False):
        size = np.dtype(NUMPY[kind]).itemsize
        lines += [
            f".reg .{REGISTER[size]} %{name};",
            f"ld.param.u64 %rd1, [in_{name}];",
            f"mad.wide.u32 %rd2, %i, {size}, %rd1;",
            f"ld.global.{kind.replace('f16', 'b16')} %{name}, [%rd2];",
        ]
    size = np.dtype(NUMPY[output_type]).itemsize
    params = "".join(f".param .u64 in_{name}, " for name, _ in zip(names, input_types, strict=False))
    return f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel({params}.param .u64 out, .param .u32 n)
{{
    .reg .pred %p, %q;
    .reg .b32 %i, %t, %n;
    .reg .b64 %rd<4>;
    .reg .{REGISTER[size]} %d;
    mov.u32 %i, %ctaid.x;
    mov.u32 %t, %ntid.x;
    mul.lo.u32 %i, %i, %t;
    mov.u32 %t, %tid.x;
    add.u32 %i, %i, %t;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p bra DONE;
    {chr(10).join(lines)}
    {body}
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %rd2, %i, {size}, %rd1;
    st.global.{output_type.replace("f16", "b16")} [%rd2], %d;
DONE:
    ret;
}}
"""


def run(body: str, inputs: list[tuple[str, Sequence]], output_type: str, **options) -> np.ndarray:
    """Result of `body` for each element. `inputs`: (PTX type, array) for %a, %b, %c, equally long."""
    device = simulator.Device(64 << 20)
    n = len(inputs[0][1])
    params = []
    for kind, values in inputs:
        params.append(
            put(
                device,
                np.array(values).astype(NUMPY[kind])
                if isinstance(values, np.ndarray)
                else np.array(values, NUMPY[kind]),
            )
        )
    out = device.memory.allocate(n * np.dtype(NUMPY[output_type]).itemsize, "out")
    entry = simulator.load(ptx_of(body, [kind for kind, _ in inputs], output_type)).entries["kernel"]
    params = [address.to_bytes(8, "little") for address in (*params, out)] + [n.to_bytes(4, "little")]
    device.launch(entry, (-(-n // 64),), (64,), params, options=simulator.Options(**options))
    return get(device, out, n, NUMPY[output_type])


def put(device, values: np.ndarray, name: str | None = None) -> int:
    """Address of a copy of the array on the device."""
    address = device.memory.allocate(values.nbytes, name)
    device.memory.view(address, values.nbytes)[:] = values.reshape(-1).view(np.uint8)
    device.memory.mark_initialized(address, values.nbytes)
    return address


def get(device, address: int, n: int, dtype: str) -> np.ndarray:
    return device.memory.view(address, n * np.dtype(dtype).itemsize).view(dtype).copy()
