"""Triton on the simulator: `kernel[grid](...)` of a `@triton.jit` function runs the PTX that Triton compiles.

Triton itself types and specialises arguments, compiles, tunes and caches; it asks a *driver* for a GPU and for
launches, and a *backend* for machine code. `install` gives it those of `driver`. A launch is `launcher`'s; arrays and
tensors of the host, whose memory kernels reach through copies, are `host_memory`'s; `torch_on_cpu` is for unmodified
programs.

    from warplab.dropin import triton as simulated
    simulated.install()

Read in Triton 3.9.0. Triton is an extra, and nothing else of warplab imports it.
"""

from __future__ import annotations

import importlib.util
import os


def install(torch_cuda: bool = False, tune_for: str | None = None, arch: int | None = None, like: str = "H100") -> None:
    """Let Triton compile for the simulator and launch on it, in this process.

    `torch_cuda`: also take torch's device "cuda" for the CPU, as unmodified programs need it, where there is torch.
    `tune_for`: a card, such as "H100": @triton.autotune runs each configuration and takes that with the least estimated
    time on it. None: the card that WARPLAB_TUNE_FOR names; without one, the first configuration that compiles.
    `like`: the card to compile for, which the device looks like. `arch`: another capability to compile for, such as
    100 (sm_100a, with tcgen05).
    Raises ImportError where there is no Triton, ValueError for an unknown card.
    """
    from warplab.dropin.triton import driver
    from warplab.hardware.cards import card
    from warplab.launch.resources import architecture

    tune_for = tune_for or os.environ.get("WARPLAB_TUNE_FOR")
    driver.SimulatorDriver.tune_for = card(tune_for).name if tune_for else None
    driver.SimulatorDriver.like, driver.SimulatorDriver.arch = card(like), arch or architecture(like)[0]
    driver.replace_nvidia()
    if torch_cuda and importlib.util.find_spec("torch") is not None:
        from warplab.dropin.triton import torch_on_cpu

        torch_on_cpu.install()
