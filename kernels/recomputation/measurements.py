"""What lab 08 measures on a GPU: one function per table or plot, each returning numbers in JSON types.

Keys end in their unit: `seconds`, `bytes`, `gbps` (1e9 bytes per second). Times are medians. `MEASUREMENTS` names the
functions as `recordings.json` does. The kernels need CuPy and Numba alone; all that is called after PyTorch or JAX is
made with it, since TensorFlow was not on the machine that recorded.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.recomputation import on_jax, on_pytorch, resnet, silu
from kernels.recomputation import plan as plans
from warpcourse.bench import timing
from warpcourse.bench.timing import Candidate

N = 2**27  # 537 MB each array: beyond the L2
SAMPLE = 4096  # elements that are checked against float64
RTOL, ATOL = 1e-5, 1e-6
WIDTH, BATCH, LAYERS = 1024, 4096, 64
DEPTHS = (4, 9, 16, 36, 64, 100)
RESNET = (64, "float32"), (64, "bfloat16"), (256, "bfloat16")  # where the GPU is busy, but for the second
GIB = 2**30


def kernel_table(n: int = N) -> dict[str, Any]:
    """Measure the kernels at n elements beside a copy and, where it is installed, PyTorch's SiLU; in turns, outputs
    checked.

    `gbps` counts what each kernel must read and write.
    """
    cupy = timing.cupy_on_gpu()
    n = timing.fitting(n, 5)
    arrays = {name: cupy.random.standard_normal(n, dtype=np.float32) for name in ("x", "dy")}
    arrays |= {name: cupy.empty(n, np.float32) for name in ("y", "s", "dx")}
    silu.forward(arrays["x"], arrays["y"], arrays["s"])
    candidates = {"copy": Candidate(timing.copy_on_device, [(arrays["y"], arrays["x"])])}
    about: dict[str, dict[str, Any]] = {"copy": {"entry": "copy", "nbytes": 8 * n, "correct": True}}
    for entry, kernels in silu.KERNELS.items():
        names = [name for part in silu.MOVED[entry] for name in part]
        for kernel in kernels.values():
            given = silu.arguments(kernel, *(timing.native(kernel.language, arrays[name]) for name in names))
            call = functools.partial(_launch, kernel, silu.blocks(kernel, n))
            for name in silu.MOVED[entry][1]:
                arrays[name].fill(np.nan)
            if entry.endswith("backward"):
                silu.forward(arrays["x"], arrays["y"], arrays["s"])
            call(*given)
            label = f"{entry}, {kernel.name}"
            candidates[label] = Candidate(call, [given])
            about[label] = {"entry": entry, "nbytes": silu.nbytes(entry, n), "correct": _right(arrays, entry)}
    timings = timing.time_together(candidates)
    rows = [
        {
            "name": label.partition(", ")[2] or label,
            "entry": about[label]["entry"],
            "seconds": t.seconds,
            "gbps": t.bandwidth(about[label]["nbytes"]),
            "correct": about[label]["correct"],
        }
        for label, t in timings.items()
    ]
    return {"n": n, "rows": rows}


def pytorch_silu(n: int = N) -> dict[str, Any]:
    """Measure PyTorch's own SiLU kernels, forward and backward, at n elements; the library of `kernel_table`."""
    torch = on_pytorch.torch_on_gpu()
    x, dy = (torch.randn(n, device="cuda") for _ in range(2))
    calls = {
        "silu": (lambda: torch.nn.functional.silu(x), 8),
        "silu_backward": (lambda: torch.ops.aten.silu_backward(dy, x), 12),
    }
    found = []
    for entry, (call, each) in calls.items():
        seconds = on_pytorch.measure_step(torch, call, runs=9)["seconds"]
        found.append({"entry": entry, "name": "PyTorch", "seconds": seconds, "gbps": each * n / seconds / 1e9})
    return {"n": n, "torch": str(torch.__version__), "rows": found}


def pytorch_depth(width: int = WIDTH, batch: int = BATCH) -> dict[str, Any]:
    """Measure a step through chains of many depths: everything kept, in segments of √n, by the best plan."""
    torch = on_pytorch.torch_on_gpu()
    rows = []
    for layers in DEPTHS:
        ways = {"kept": (0,), "√n": plans.square_root(layers), "best": plans.best([1] * layers, [2] * layers)}
        rows += [_chain_row(torch, layers, width, batch, plan) | {"way": way} for way, plan in ways.items()]
    return {"width": width, "batch": batch, "torch": str(torch.__version__), "rows": rows}


def pytorch_segments(layers: int = LAYERS, width: int = WIDTH, batch: int = BATCH) -> dict[str, Any]:
    """Measure a step through one chain, by the length of its segments."""
    torch = on_pytorch.torch_on_gpu()
    lengths = [2**k for k in range(layers.bit_length())]
    rows = [_chain_row(torch, layers, width, batch, plans.even(layers, n)) | {"length": n} for n in lengths]
    return {"layers": layers, "width": width, "batch": batch, "torch": str(torch.__version__), "rows": rows}


def pytorch_timeline(layers: int = LAYERS, width: int = WIDTH, batch: int = BATCH) -> dict[str, Any]:
    """Measure bytes held after each layer of a step, forward and backward, everything kept and in segments of √n."""
    torch = on_pytorch.torch_on_gpu()
    modules, _ = on_pytorch.chain(torch, layers, width)
    on_pytorch.parameters(modules)
    x = torch.randn(batch, width, device="cuda")
    ways = {"kept": (0,), "√n": plans.square_root(layers)}
    held = {way: on_pytorch.timeline(torch, modules, x, plan) for way, plan in ways.items()}
    return {"layers": layers, "activation_bytes": 4 * width * batch, "torch": str(torch.__version__), "held": held}


def pytorch_resnet(depth: int = 101) -> dict[str, Any]:
    """Measure forward and backward pass of ResNet-101 by plan, and by batch and precision as RESNET has them."""
    torch = on_pytorch.torch_on_gpu()
    modules = on_pytorch.resnet(torch, depth)
    weights = on_pytorch.parameters(modules)
    inputs, inside = resnet.bytes_of(resnet.blocks(depth))
    best = plans.best(inputs, inside)
    # The head keeps next to nothing; it belongs to the last segment, whose number of modules is one more.
    ways = {
        "kept": (0,),
        "every block": tuple(range(len(modules) - 1)),
        "√n": plans.square_root(len(inputs)),
        "best": best,
    }
    rows = []
    for batch, precision in RESNET:
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        target = torch.randint(1000, (batch,), device="cuda")
        for way, plan in ways.items():
            step = functools.partial(_resnet_step, torch, modules, x, target, plan, precision)
            found = on_pytorch.measure_step(torch, step, runs=20)
            rows.append({"batch": batch, "precision": precision, "way": way, "segments": len(plan)} | found)
        del x, target, step
    return {
        "depth": depth,
        "weights_bytes": 4 * sum(w.numel() for w in weights),
        "plan": list(best),
        "torch": str(torch.__version__),
        "rows": rows,
    }


def pytorch_largest_batch(depth: int = 101, limit_bytes: int = 4 * GIB) -> dict[str, Any]:
    """Measure the largest batch of ResNet-101, in steps of 4, whose step fits `limit_bytes`: tried."""
    torch = on_pytorch.torch_on_gpu()
    modules = on_pytorch.resnet(torch, depth)
    on_pytorch.parameters(modules)
    inputs, inside = resnet.bytes_of(resnet.blocks(depth))
    torch.cuda.set_per_process_memory_fraction(limit_bytes / torch.cuda.get_device_properties(0).total_memory)
    rows = []
    for precision in ("float32", "bfloat16"):
        for way, plan in (("kept", (0,)), ("best", plans.best(inputs, inside))):
            low, high = 0, 128  # in fours: `low` fits, `high` is taken not to
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _fits(torch, modules, 4 * middle, plan, precision) else (low, middle)
            rows.append({"precision": precision, "way": way, "batch": 4 * low})
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {"depth": depth, "limit_bytes": limit_bytes, "torch": str(torch.__version__), "rows": rows}


def pytorch_states(depth: int = 101, batch: int = 32) -> dict[str, Any]:
    """Measure bytes of the parts of a step of ResNet-101 with Adam, as differences of what the allocator holds."""
    torch = on_pytorch.torch_on_gpu()
    held = [torch.cuda.memory_allocated()]
    modules = on_pytorch.resnet(torch, depth)
    held.append(torch.cuda.memory_allocated())
    weights = on_pytorch.parameters(modules)
    held.append(torch.cuda.memory_allocated())
    optimiser = torch.optim.Adam(weights, lr=1e-4)
    optimiser.step()  # makes the states
    torch.cuda.synchronize()
    held.append(torch.cuda.memory_allocated())
    x, target = torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(1000, (batch,), device="cuda")
    before = torch.cuda.memory_allocated()
    loss = torch.nn.functional.cross_entropy(on_pytorch.run(torch, modules, x, (0,)), target)
    torch.cuda.synchronize()
    activations = torch.cuda.memory_allocated() - before
    del loss
    names = ("weights_bytes", "gradients_bytes", "optimiser_bytes")
    found = {name: b - a for name, a, b in zip(names, held, held[1:], strict=False)}
    return {"depth": depth, "batch": batch, "activations_bytes": activations, "torch": str(torch.__version__)} | found


def jax_depth(width: int = WIDTH, batch: int = BATCH) -> dict[str, Any]:
    """Measure the chain of `pytorch_depth` in JAX, whole steps compiled by XLA; `gradient_error`: to all kept."""
    jax = on_jax.jax_on_gpu()
    rows = []
    for layers in (16, 64):
        sums = {}
        for way, plan in {"kept": (0,), "√n": plans.square_root(layers)}.items():
            timing_of = on_jax.measure_chain(jax, layers, width, batch, plan)
            sums[way] = timing_of.pop("gradient_sum")
            rows.append({"layers": layers, "way": way, "segments": len(plan)} | timing_of)
        rows[-1]["gradient_error"] = abs(sums["√n"] / sums["kept"] - 1)
        rows[-1]["correct"] = rows[-1]["gradient_error"] < 1e-2
    return {"width": width, "batch": batch, "jax": jax.__version__, "rows": rows}


def _launch(kernel: Any, blocks: int, *arguments: Any) -> None:
    kernel.launch(blocks, silu.BLOCK, arguments)


def _right(arrays: dict[str, Any], entry: str) -> bool:
    """Return whether the first and the last elements are SiLU's, as float64 has them."""
    ends = []
    for part in (slice(SAMPLE), slice(-SAMPLE, None)):
        x, dy = (arrays[name][part].get().astype(np.float64) for name in ("x", "dy"))
        s = 1 / (1 + np.exp(-x))
        expected = {"y": x * s, "s": s, "dx": dy * s * (1 + x * (1 - s))}
        ends += [np.allclose(arrays[k][part].get(), expected[k], rtol=RTOL, atol=ATOL) for k in silu.MOVED[entry][1]]
    return bool(all(ends))


def _chain_row(torch: Any, layers: int, width: int, batch: int, plan: plans.Plan) -> dict[str, Any]:
    modules, count = on_pytorch.chain(torch, layers, width)
    on_pytorch.parameters(modules)
    x = torch.randn(batch, width, device="cuda")

    def step() -> None:
        on_pytorch.run(torch, modules, x, plan).sum().backward()

    found = on_pytorch.measure_step(torch, step)
    before = count[0]
    step()
    ran = count[0] - before
    return {
        "layers": layers,
        "segments": len(plan),
        "evaluations": ran,
        "correct": ran == plans.evaluations(plan, layers),
        **found,
    }


def _resnet_step(torch: Any, modules: Any, x: Any, target: Any, plan: plans.Plan, precision: str) -> None:
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
        loss = torch.nn.functional.cross_entropy(on_pytorch.run(torch, modules, x, plan), target)
    loss.backward()


def _fits(torch: Any, modules: Any, batch: int, plan: plans.Plan, precision: str) -> bool:
    try:
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        _resnet_step(torch, modules, x, torch.zeros(batch, dtype=torch.int64, device="cuda"), plan, precision)
        torch.cuda.synchronize()
        return True
    except torch.cuda.OutOfMemoryError:
        return False
    finally:
        x = None
        torch.cuda.empty_cache()


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "kernel_table": kernel_table,
    "pytorch_silu": pytorch_silu,
    "pytorch_depth": pytorch_depth,
    "pytorch_segments": pytorch_segments,
    "pytorch_timeline": pytorch_timeline,
    "pytorch_resnet": pytorch_resnet,
    "pytorch_states": pytorch_states,
    "pytorch_largest_batch": pytorch_largest_batch,
    "jax_depth": jax_depth,
}
