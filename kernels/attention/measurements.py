"""What lab 13 measures on a GPU: one function per table, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `tflops` (1e12 operations per second: 4 · heads · queries · keys · size forward, half
of that where causal, 2.5 times that backward), `gbps` (of keys and values, 1e9 bytes per second). Times are medians, of
random data and in turns with PyTorch's backends of `scaled_dot_product_attention`, unfused products and softmax among
them, and with cuDNN's own graph; before that outputs are checked against float64. `ratio_to_best`: to the fastest of
these. `bytes`: of device memory that a call adds, outputs with them, as CuPy's allocator counts them; `peers_bytes`: as
PyTorch's counts them, at the peak.
`MEASUREMENTS` names the functions as `recordings.json` does.
"""

import contextlib
import functools
import importlib.metadata
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.attention import on_cudnn
from kernels.attention.backward_pass import backward
from kernels.attention.decoding import decode
from kernels.attention.forward_pass import forward
from warpcourse.bench import hopper, pytorch, timing
from warpcourse.bench.timing import Candidate

TOKENS, HEADS = 16384, 16  # of a batch
LENGTHS = 512, 1024, 2048, 4096, 8192, 16384
BACKENDS = {"cuDNN": "CUDNN_ATTENTION", "FlashAttention 2": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}
UNFUSED, GRAPH = "unfused", "cuDNN's graph"
CHECKED = 64  # first and last queries, of the first head
MOST_ERROR = 2.0**-9  # of a float16 output, relative to the norm
CACHE_KEYS, BATCHES = 8192, (1, 8, 64)


def operands(batch: int, heads: int, queries: int, keys: int, size: int, shared_by: int = 1) -> list[Any]:
    """Return random float16 q, k and v, normally distributed."""
    cupy = timing.cupy_on_gpu()
    shapes = (batch, heads, queries, size), *[(batch, heads // shared_by, keys, size)] * 2
    return [cupy.random.standard_normal(shape, dtype=np.float32).astype(np.float16) for shape in shapes]


def steps() -> list[str]:
    """Return the steps with tensor cores that this GPU has the instructions for."""
    return [name for name in ("mma", "wgmma") if name != "wgmma" or hopper.available()]


def _error(out: Any, q: Any, k: Any, v: Any, causal: bool) -> float:
    """Return how far rows of the first head are from float64, in the Frobenius norm."""
    cupy = timing.cupy_on_gpu()
    queries, keys = q.shape[2], k.shape[2]
    errors = []
    for rows in (slice(CHECKED), slice(-CHECKED, None)):
        at = cupy.arange(queries)[rows]
        s = q[0, 0, rows].astype(np.float64) @ k[0, 0].astype(np.float64).T / q.shape[3] ** 0.5
        if causal:
            s = cupy.where(cupy.arange(keys) <= at[:, None] + keys - queries, s, -np.inf)
        p = cupy.exp(s - s.max(-1, keepdims=True))
        exact = p / p.sum(-1, keepdims=True) @ v[0, 0].astype(np.float64)
        errors.append(float(cupy.linalg.norm(out[0, 0, rows] - exact) / cupy.linalg.norm(exact)))
    return max(errors)


def _peers(call: Callable[[], Any], torch: Any, *, unfused: bool = False) -> dict[str, Callable[[], Any]]:
    """Return `call` under each backend that takes it; `unfused`: also as products and a softmax, all in float16."""
    kernel, found = torch.nn.attention.sdpa_kernel, {}
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)

    def under(backend: Any) -> Any:
        with kernel([backend]):
            return call()

    for name, backend in (BACKENDS | ({UNFUSED: "MATH"} if unfused else {})).items():
        with contextlib.suppress(RuntimeError):  # it does not take these shapes
            under(getattr(torch.nn.attention.SDPBackend, backend))
            found[name] = functools.partial(under, getattr(torch.nn.attention.SDPBackend, backend))
    return found


def _row(candidates: dict[str, Callable[[], Any]], ours: list[str], operations: float) -> dict[str, Any]:
    found = timing.time_together({name: Candidate(call) for name, call in candidates.items()}, runs=5)
    best = min((t.seconds for name, t in found.items() if name not in ours), default=None)
    return {
        "seconds": {name: t.seconds for name, t in found.items()},
        "tflops": {name: operations / t.seconds / 1e12 for name, t in found.items()},
        "ratio_to_best": {name: best / found[name].seconds for name in ours} if best else {},
    }


def _versions(torch: Any) -> dict[str, str]:
    return {"torch": str(torch.__version__), "frontend": importlib.metadata.version("nvidia-cudnn-frontend")}


def _tensors(torch: Any, *arrays: Any) -> list[Any]:
    return [torch.as_tensor(x, device="cuda") for x in arrays]


def _peak_bytes(torch: Any, call: Callable[[], Any]) -> int:
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    return torch.cuda.max_memory_allocated() - before


def _pool_bytes(call: Callable[[], Any]) -> int:
    """Return what a call to ours takes of CuPy's memory, which is freed no sooner than the call returns."""
    cuda = timing.cupy_on_gpu().cuda
    pool = cuda.MemoryPool()
    with cuda.using_allocator(pool.malloc):
        call()
        return pool.total_bytes()


def forward_table(size: int = 128, lengths: tuple[int, ...] = LENGTHS) -> dict[str, Any]:
    """Measure forward passes of 16 heads, 16k tokens in all, by length, causal and not."""
    torch = pytorch.torch_on_gpu()
    rows = []
    for length in lengths:
        q, k, v = operands(TOKENS // length, HEADS, length, length, size)
        tensors = _tensors(torch, q, k, v)
        out, lse = timing.cupy_on_gpu().empty_like(q), timing.cupy_on_gpu().empty(q.shape[:3], np.float32)
        for causal in (False, True):
            sdpa = functools.partial(torch.nn.functional.scaled_dot_product_attention, *tensors, is_causal=causal)
            ours = {name: functools.partial(forward, q, k, v, causal, None, name, out, lse) for name in steps()}
            errors = {}
            for name, call in ours.items():
                out.fill(np.nan)
                call()
                errors[name] = _error(out, q, k, v, causal)
            peers = _peers(sdpa, torch, unfused=True)
            graph = {GRAPH: on_cudnn.forward_call(q, k, v, causal)}
            errors[GRAPH] = _error(graph[GRAPH]()[0], q, k, v, causal)
            operations = 4 * HEADS * TOKENS * length * size / (2 if causal else 1)
            rows.append(
                {"length": length, "causal": causal, **_row(ours | graph | peers, list(ours), operations)}
                | {"relative_error": errors, "correct": all(e < MOST_ERROR for e in errors.values())}
                | {"bytes": {x: _pool_bytes(functools.partial(forward, q, k, v, causal, None, x)) for x in ours}}
                | {"peers_bytes": {name: _peak_bytes(torch, call) for name, call in peers.items()}}
            )
    return {"size": size, "heads": HEADS, "tokens": TOKENS, **_versions(torch), "rows": rows}


def backward_table(size: int = 128, lengths: tuple[int, ...] = LENGTHS[1:]) -> dict[str, Any]:
    """Measure backward passes likewise; `relative_error`: of dq, dk and dv to PyTorch's, in the Frobenius norm."""
    torch, cupy = pytorch.torch_on_gpu(), timing.cupy_on_gpu()
    norm, rows = cupy.linalg.norm, []
    for length in lengths:
        q, k, v = operands(TOKENS // length, HEADS, length, length, size)
        dout = cupy.random.standard_normal(q.shape, dtype=np.float32).astype(np.float16)
        tensors = [t.requires_grad_() for t in _tensors(torch, q, k, v)]
        (of_dout,) = _tensors(torch, dout)
        for causal in (False, True):
            out, lse = forward(q, k, v, causal, step="mma")
            ours = {name: functools.partial(backward, q, k, v, out, lse, dout, causal, step=name) for name in steps()}
            sdpa = functools.partial(torch.nn.functional.scaled_dot_product_attention, *tensors, is_causal=causal)
            outputs = {name: call() for name, call in _peers(sdpa, torch, unfused=True).items()}
            peers = {
                name: functools.partial(torch.autograd.grad, of_name, tensors, of_dout, retain_graph=True)
                for name, of_name in outputs.items()
            }
            theirs = [cupy.asarray(x).astype(np.float32) for x in next(iter(peers.values()))()]
            left = on_cudnn.forward_call(q, k, v, causal)()
            graph = {GRAPH: on_cudnn.backward_call((q, k, v), *left, dout, causal)}
            errors = {
                name: max(float(norm(x - y) / norm(y)) for x, y in zip(call(), theirs, strict=True))
                for name, call in (ours | graph).items()
            }
            operations = 10 * HEADS * TOKENS * length * size / (2 if causal else 1)
            rows.append(
                {"length": length, "causal": causal, **_row(ours | graph | peers, list(ours), operations)}
                | {"relative_error": errors, "correct": all(e < 4 * MOST_ERROR for e in errors.values())}
                | {"bytes": {name: _pool_bytes(call) for name, call in ours.items()}}
                | {"peers_bytes": {name: _peak_bytes(torch, call) for name, call in peers.items()}}
            )
            del outputs, peers  # with all weights
    return {"size": size, "heads": HEADS, "tokens": TOKENS, **_versions(torch), "rows": rows}


def decode_table(size: int = 128, keys: int = CACHE_KEYS) -> dict[str, Any]:
    """Measure decoding of one token by batch, 16 heads of keys, one or eight query heads for each, beside a copy."""
    torch, cupy = pytorch.torch_on_gpu(), timing.cupy_on_gpu()
    rows = []
    for batch in BATCHES:
        for shared_by in (1, 8):
            q, k, v = operands(batch, HEADS * shared_by, 1, keys, size, shared_by)
            flat = q[:, :, 0]
            tensors = _tensors(torch, q, k, v)
            sdpa = functools.partial(
                torch.nn.functional.scaled_dot_product_attention, *tensors, enable_gqa=shared_by > 1
            )
            lengths, table = cupy.full(batch, keys, np.int32), cupy.arange(batch, dtype=np.int32)[:, None]
            ours = {"decode": functools.partial(decode, flat, k, v, lengths, table)}
            error = _error(ours["decode"]()[0][:, :, None], q, k, v, False)
            copied = timing.copy_candidate(k.nbytes)
            found = _row(ours | _peers(sdpa, torch), list(ours), 4 * batch * HEADS * shared_by * keys * size)
            copy = timing.time_together({"copy": copied})["copy"]
            moved = k.nbytes + v.nbytes
            gbps = {name: moved / seconds / 1e9 for name, seconds in found["seconds"].items()}
            gbps["copy"] = copy.bandwidth(2 * k.nbytes)
            rows.append(
                {"batch": batch, "shared_by": shared_by, **found, "gbps": gbps}
                | {"relative_error": {"decode": error}, "correct": error < MOST_ERROR}
            )
    return {"size": size, "keys": keys, "heads": HEADS, "torch": str(torch.__version__), "rows": rows}


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "forward_table": forward_table,
    "forward_64": functools.partial(forward_table, 64),
    "backward_table": backward_table,
    "backward_64": functools.partial(backward_table, 64),
    "decode_table": decode_table,
}
