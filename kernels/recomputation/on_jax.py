"""Recomputation through JAX on a GPU: what XLA's plan of a step needs. Needs JAX with CUDA, which is not installed."""

import importlib
import os
from typing import Any

import numpy as np

from kernels.recomputation import plan as plans
from warpcourse.bench import random_inputs, timing

GAIN = 1.7  # of the weights' deviation over 1 / √width: keeps SiLU's chain from fading


def jax_on_gpu() -> Any:
    """Return JAX, which then takes memory as it needs it. RuntimeError where it is missing or sees no GPU."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        jax = importlib.import_module("jax")
    except ImportError as missing:
        raise RuntimeError(
            "jax is not installed, and this measurement is made with it; install it with CUDA, or leave this key out"
        ) from missing
    if jax.default_backend() != "gpu":
        raise RuntimeError("jax is installed but sees no GPU; install jax with its CUDA plugin")
    return jax


def measure_chain(jax: Any, layers: int, width: int, batch: int, plan: plans.Plan, runs: int = 5) -> dict[str, Any]:
    """Return peak and time of a step through `layers` products and SiLUs, float32, compiled as one.

    `temporary_bytes`: what XLA's plan needs beside arguments and results, `memory_analysis().temp_size_in_bytes`.
    `gradient_sum`: for comparison between plans.
    """
    jnp = importlib.import_module("jax.numpy")
    rng = np.random.default_rng(random_inputs.SEED)  # the same for every plan
    weights = [jnp.asarray(rng.standard_normal((width, width), dtype="f") * (GAIN / width**0.5)) for _ in range(layers)]
    x = jnp.asarray(rng.standard_normal((batch, width), dtype="f"))

    def part(x: Any, some: list[Any]) -> Any:
        for w in some:
            x = jax.nn.silu(x @ w)
        return x

    def loss(weights: list[Any], x: Any) -> Any:
        *again, last = plans.segments(plan, layers)
        for segment in again:
            x = jax.checkpoint(part)(x, weights[segment.start : segment.stop])
        return part(x, weights[last.start : last.stop]).sum()

    step = jax.jit(jax.grad(loss)).lower(weights, x).compile()
    gradients = jax.block_until_ready(step(weights, x))
    total = float(sum(jnp.abs(g).sum() for g in gradients))
    seconds = timing.time_host(lambda: jax.block_until_ready(step(weights, x)), runs=runs, warmup=1).seconds
    return {
        "temporary_bytes": int(step.memory_analysis().temp_size_in_bytes),
        "seconds": seconds,
        "gradient_sum": total,
    }
