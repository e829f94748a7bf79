"""torch's "cuda" without a GPU: tensors that a program asks for there are made on the CPU, where kernels find them.

For unmodified programs, which name the device in each call. What asks for more of a GPU (streams, events, graphs, other
libraries' kernels) gets torch's own error.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from warplab.dropin.simulated_device import NAME, memory_info
from warplab.dropin.triton.driver import SimulatorDriver
from warplab.dropin.triton.host_memory import TOLD


class _Blas:
    """cuBLAS as Triton binds it, for programs that compare with it: torch computes, and nothing is launched."""

    def __init__(self, workspace: torch.Tensor) -> None:
        pass

    def matmul(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        """Store the product of `a` and the transposed `b`, rounded once."""
        out.copy_(a.float() @ b.float().T)


class _OnCpu(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if function is torch.Tensor.cuda:
            return args[0]
        if function == torch.Tensor.is_cuda.__get__:  # made anew each time
            return True
        if function is torch.Tensor.data_ptr:
            address = function(*args)
            TOLD[address] = args[0]
            return address
        kwargs = {name: _here(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return function(*map(_here, args), **kwargs)


def _here(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.partition(":")[0] == "cuda" else value


@functools.cache
def install() -> None:
    """Take "cuda" for the CPU from now on, in this thread, and answer for a device like the driver's card."""
    from triton._C.libtriton import nvidia

    nvidia.cublas.CublasLt = _Blas
    _OnCpu().__enter__()
    like = SimulatorDriver.like
    major, minor = like.compute_capability
    properties = SimpleNamespace(name=NAME, major=major, minor=minor, multi_processor_count=like.sms, warp_size=32)
    properties.total_memory, properties.shared_memory_per_block_optin = memory_info().total, like.block_shared_bytes
    answers: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": NAME,
        "get_device_capability": (major, minor),
        "get_device_properties": properties,
        **dict.fromkeys(("set_device", "synchronize", "empty_cache", "init", "manual_seed", "manual_seed_all"), None),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *args, _answer=answer, **kwargs: _answer)
