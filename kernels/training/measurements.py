"""What lab 07 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `gbps` (1e9 bytes per second of the arrays that have to be read and written once,
whatever the way moves). Times are medians. `MEASUREMENTS` names the functions as `recordings.json` does. Two measure
through another framework, which the course does not install: JAX for what XLA does, PyTorch for arrays that are handed
over without a copy. Where it is missing the measurement fails and says so.
"""

import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from kernels.training import bias_gelu, hlo, reference
from warpcourse.bench import random_inputs, timing
from warpcourse.bench.timing import Candidate

ROWS, COLUMNS = 8192, 4096  # 134 MB each array: beyond the L2
SAMPLE = 256  # rows that are checked against float64
RTOL, ATOL = 1e-4, 1e-5
JAX_BATCH, JAX_ROUNDS = 20, 15  # calls between two readings of the clock, readings


def kernel_table(rows: int = ROWS, columns: int = COLUMNS) -> dict[str, Any]:
    """Measure forward and backward kernels beside a copy and CuPy's operations, in turns, outputs checked."""
    cupy = timing.cupy_on_gpu()
    x, dy = (cupy.random.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    bias, out, dbias = (
        cupy.random.standard_normal(columns, dtype=np.float32),
        cupy.empty_like(x),
        cupy.empty(columns, "f"),
    )
    found = []
    for way, table, arrays, one_by_one in (
        ("forward", bias_gelu.FORWARD, (x, bias, out), lambda: _forward_one_by_one(cupy, x, bias)),
        ("backward", bias_gelu.BACKWARD, (x, bias, dy, out, dbias), lambda: _backward_one_by_one(cupy, x, bias, dy)),
    ):
        candidates = {"copy": Candidate(timing.copy_on_device, [(out, x)]), "cupy, op by op": Candidate(one_by_one)}
        right = {"copy": True}
        for name, kernel in table.items():
            given = tuple(timing.native(kernel.language, array) for array in arrays)
            grid, _ = bias_gelu.layout(kernel, rows, columns)
            candidates[name] = Candidate(
                lambda *a, k=kernel, g=grid: k.launch(g, bias_gelu.BLOCK, a), [bias_gelu.arguments(kernel, *given)]
            )
            out.fill(np.nan)
            dbias.fill(0)
            candidates[name].function(*candidates[name].arguments[0])
            right[name] = _right(x, bias, out) if way == "forward" else _right_backward(x, bias, dy, out, dbias)
        right["cupy, op by op"] = (
            _right(x, bias, one_by_one()) if way == "forward" else _right_backward(x, bias, dy, *one_by_one())
        )
        moved = x.nbytes * {"forward": 2, "backward": 3}[way]
        for name, t in timing.time_together(candidates).items():
            nbytes = 2 * x.nbytes if name == "copy" else moved
            found.append(
                {"way": way, "name": name, "seconds": t.seconds, "gbps": t.bandwidth(nbytes), "correct": right[name]}
            )
    return {"rows": rows, "columns": columns, "kernels": found}


def xla_through_jax(rows: int = ROWS, columns: int = COLUMNS) -> dict[str, Any]:
    """Measure gelu(x + bias) and its gradients in JAX: operation by operation, and compiled as one by XLA.

    `kernels` counts what the optimised HLO launches; seconds are of the host's clock over many calls.
    """
    timing.require_gpu("This measurement")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # CuPy is in the same process
    jax = _framework("jax")
    jnp = importlib.import_module("jax.numpy")
    rng = random_inputs.generator()
    host_x, host_dy = (rng.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    host_bias = rng.standard_normal(columns, dtype=np.float32)
    x, dy, bias = (jax.device_put(a) for a in (host_x, host_dy, host_bias))

    def forward(x: Any, bias: Any) -> Any:
        z = x + bias
        return 0.5 * z * (1 + jnp.tanh(reference.SCALE * (z + reference.CUBIC * z * z * z)))

    def backward(x: Any, bias: Any, dy: Any) -> Any:
        return jax.vjp(forward, x, bias)[1](dy)

    found = []
    for way, function, arguments in (("forward", forward, (x, bias)), ("backward", backward, (x, bias, dy))):
        compiled = jax.jit(function).lower(*arguments).compile()
        text = compiled.as_text()
        for name, call in (("op by op", function), ("XLA", compiled)):
            result = jax.block_until_ready(call(*arguments))
            if way == "forward":
                right = _right(host_x, host_bias, np.asarray(result))
            else:
                right = _right_backward(host_x, host_bias, host_dy, *map(np.asarray, result))
            del result
            seconds = timing.time_host(_batch(jax, call, arguments), runs=JAX_ROUNDS).seconds / JAX_BATCH
            nbytes = x.nbytes * {"forward": 2, "backward": 3}[way]
            row = {"way": way, "name": name, "seconds": seconds, "gbps": nbytes / seconds / 1e9, "correct": right}
            found.append(row | ({"kernels": hlo.launched(text)} if name == "XLA" else {}))
        found[-1]["entry"] = hlo.entry(text)
    return {"rows": rows, "columns": columns, "jax": jax.__version__, "device": str(x.device), "kernels": found}


def dlpack_through_pytorch(rows: int = 1024, columns: int = 1024) -> dict[str, Any]:
    """Measure the forward kernel on PyTorch's tensors: handed over by DLPack, and by way of NumPy; seconds of a whole
    call."""
    cupy = timing.cupy_on_gpu()
    torch = _framework("torch")
    torch.manual_seed(random_inputs.SEED)
    x, bias = torch.randn(rows, columns, device="cuda"), torch.randn(columns, device="cuda")

    def by_dlpack() -> Any:
        y = torch.empty_like(x)
        bias_gelu.forward(cupy.from_dlpack(x), cupy.from_dlpack(bias), cupy.from_dlpack(y), "cuda_float4")
        cupy.cuda.get_current_stream().synchronize()
        return y

    def by_numpy() -> Any:
        there = cupy.asarray(x.cpu().numpy())
        y = bias_gelu.forward(there, cupy.asarray(bias.cpu().numpy()), cupy.empty_like(there), "cuda_float4")
        result = torch.from_numpy(cupy.asnumpy(y)).cuda()
        torch.cuda.synchronize()
        return result

    rows_found = []
    for name, call in (("DLPack", by_dlpack), ("NumPy", by_numpy)):
        right = _right(x.cpu().numpy(), bias.cpu().numpy(), call().cpu().numpy())
        rows_found.append({"name": name, "seconds": timing.time_host(call, runs=30).seconds, "correct": right})
    same = cupy.from_dlpack(x).data.ptr == x.data_ptr()
    return {
        "rows": rows,
        "columns": columns,
        "torch": str(torch.__version__),
        "same_address": bool(same),
        "ways": rows_found,
    }


def _framework(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise RuntimeError(
            f"{name} is not installed, and this measurement is made with it; install it with its CUDA libraries, or "
            "leave this key out"
        ) from missing


def _batch(jax: Any, call: Callable[..., Any], arguments: tuple) -> Callable[[], None]:
    def run() -> None:
        for _ in range(JAX_BATCH - 1):
            call(*arguments)
        jax.block_until_ready(call(*arguments))

    return run


def _forward_one_by_one(cupy: Any, x: Any, bias: Any) -> Any:
    z = x + bias
    return (
        z
        * np.float32(0.5)
        * (cupy.tanh((z * z * z * np.float32(reference.CUBIC) + z) * np.float32(reference.SCALE)) + np.float32(1))
    )


def _backward_one_by_one(cupy: Any, x: Any, bias: Any, dy: Any) -> tuple[Any, Any]:
    z = x + bias
    t = cupy.tanh((z * z * z * np.float32(reference.CUBIC) + z) * np.float32(reference.SCALE))
    inner = (z * z * np.float32(3 * reference.CUBIC) + np.float32(1)) * np.float32(reference.SCALE)
    dx = dy * ((t + np.float32(1)) * np.float32(0.5) + z * np.float32(0.5) * (np.float32(1) - t * t) * inner)
    return dx, dx.sum(axis=0)


def _host(array: Any) -> np.ndarray:
    """Return an array of CuPy or NumPy on the host, in float64."""
    return np.asarray(array.get() if hasattr(array, "get") else array).astype(np.float64)


def _right(x: Any, bias: Any, y: Any) -> bool:
    """Return whether the first and the last rows of y are gelu(x + bias), as float64 has it."""
    return all(
        np.allclose(_host(y[part]), reference.gelu(_host(x[part]) + _host(bias)), rtol=RTOL, atol=ATOL)
        for part in (slice(SAMPLE), slice(-SAMPLE, None))
    )


def _right_backward(x: Any, bias: Any, dy: Any, dx: Any, dbias: Any) -> bool:
    """Return the same for dx; dbias, whole, against the sums of dx in float64."""
    parts = all(
        np.allclose(_host(dx[p]), reference.backward(_host(x[p]), _host(bias), _host(dy[p]))[0], rtol=RTOL, atol=ATOL)
        for p in (slice(SAMPLE), slice(-SAMPLE, None))
    )
    sums = _host(dx.sum(axis=0, dtype=np.float64))
    return bool(parts and np.allclose(_host(dbias), sums, rtol=1e-3, atol=1e-5 * len(x) ** 0.5))


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "kernel_table": kernel_table,
    "xla_through_jax": xla_through_jax,
    "dlpack_through_pytorch": dlpack_through_pytorch,
}
