"""Compiles batches of kernels, and runs them on the simulator or on a GPU."""

from __future__ import annotations

import hashlib
import re

import numpy as np

from tests.warplab.differential.generator import TRIPS, Kernel, inputs, options_of, source_of
from warplab import simulator
from warplab.compile import nvrtc


def ptx_of(batch: int) -> str:
    options, arch = options_of(batch)
    return nvrtc.compile_cuda(source_of(batch), f"batch{batch}.cu", arch, options)


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def ptx_digest(ptx: str) -> str:
    """Of the code alone: comments and names of files, which differ between machines, left out."""
    ptx = re.sub(r"//.*", "", ptx.partition(".section")[0])
    return digest("\n".join(line for line in ptx.split("\n") if not line.lstrip().startswith((".file", ".loc"))))


def result_digest(words: np.ndarray) -> str:
    return digest(np.ascontiguousarray(words, "<u4").tobytes())


def simulate(program: simulator.Program, kernel: Kernel, **options) -> np.ndarray:
    """Words of the results, then the accumulators. `options`: of the simulator."""
    device = simulator.Device(64 << 20)
    arrays = {**inputs(kernel.seed), "out": np.zeros(kernel.threads * kernel.words, np.uint32)}
    addresses = {}
    for name, values in arrays.items():
        addresses[name] = device.memory.allocate(values.nbytes, name)
        device.memory.view(addresses[name], values.nbytes)[:] = values.view(np.uint8)
        if name != "out":
            device.memory.mark_initialized(addresses[name], values.nbytes)
    order = ("in_u", "in_w", "in_f", "in_d", "g", "out")
    params = [addresses[name].to_bytes(8, "little") for name in order]
    params += [value.to_bytes(4, "little") for value in (kernel.threads, TRIPS)]
    entry = program.entries[kernel.name]
    device.launch(entry, (kernel.grid,), kernel.block, params, options=simulator.Options(counters=False, **options))
    return np.concatenate(
        [device.memory.view(addresses[name], arrays[name].nbytes).view(np.uint32).copy() for name in ("out", "g")]
    )


def gpu_module(ptx: str):
    """A batch as a CuPy module, loaded on this machine's GPU."""
    import cupy

    cupy.cuda.Device().synchronize()  # makes its context the current one
    module = cupy.cuda.function.Module()
    module.load(ptx.encode() + b"\0")
    return module


def run_on_gpu(module, kernel: Kernel) -> np.ndarray:
    """The same on this machine's GPU. `module`: of `gpu_module`."""
    import cupy

    arrays = {name: cupy.asarray(values) for name, values in inputs(kernel.seed).items()}
    out = cupy.zeros(kernel.threads * kernel.words, np.uint32)
    order = [arrays[name] for name in ("in_u", "in_w", "in_f", "in_d", "g")]
    arguments = (*order, out, np.uint32(kernel.threads), np.uint32(TRIPS))
    module.get_function(kernel.name)((kernel.grid,), kernel.block, arguments)
    return np.concatenate([cupy.asnumpy(out), cupy.asnumpy(arrays["g"])])
