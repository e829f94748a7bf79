"""What Triton asks of a driver and of a compiler's backend: the simulated device's, in place of NVIDIA's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler.compiler import CompiledKernel
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import jit
from triton.runtime.autotuner import Autotuner
from triton.runtime.driver import driver as active_driver
from triton.runtime.errors import OutOfResources, PTXASError

from warplab import simulator
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.source_files import label_files
from warplab.dropin.simulated_device import NO_CLOCK
from warplab.dropin.triton.host_memory import as_tensor
from warplab.dropin.triton.launcher import Launcher, assembled
from warplab.hardware.cards import Card, card
from warplab.launch import profiling, resources
from warplab.simulator.run.launch_limits import MAX_THREADS

PTX_VERSION = 90  # of CUDA 13.0, whose assembler counts machine code here; Triton's own is newer
REGISTERS = 1 << 16  # of a multiprocessor
_UNTIMED = [float("inf")] * 3


class SimulatorBackend(CUDABackend):
    """Triton's compiler for NVIDIA, which ends with PTX here: the binary is its text."""

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.binary_ext = "simulated"

    def parse_options(self, opts: dict) -> Any:
        return super().parse_options({"ptx_version": PTX_VERSION, **opts})

    def add_stages(self, stages: dict, options: Any, language: Any) -> None:
        super().add_stages(stages, options, language)
        del stages["cubin"]
        stages["simulated"] = lambda ptx, metadata: ptx.encode()

    @functools.cache  # noqa: B019 - as Triton's own
    def hash(self) -> str:
        return f"warplab-{super().hash()}"


class Utilities:
    """Triton's `driver.active.utils`."""

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple:
        """Return (module, function, registers, spills, most threads per block) of PTX; the function is for Launcher."""
        ptx = binary.decode()
        labelled, sources = label_files(ptx)
        program = simulator.load(labelled, sources)
        return program, (program.entries[name], ptx), 0, 0, MAX_THREADS

    def unload_module(self, module) -> None:
        """Do nothing: there is nothing to unload."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        like = SimulatorDriver.like
        return {
            "max_shared_mem": like.block_shared_bytes,
            "max_num_regs": REGISTERS,
            "multiprocessor_count": like.sms,
            "warpSize": 32,
            "sm_clock_rate": 1000 * like.clock_mhz,
            "mem_clock_rate": round(1000 * (like.memory_mhz or 0)),
            "mem_bus_width": like.memory_bits or 0,
        }


class SimulatorDriver(DriverBase):
    """The simulated device, as Triton asks for one. `tune_for`: the card for whose estimated times configurations are
    chosen; None for no times. `like`: the card whose multiprocessors, shared memory and clocks it reports."""

    tune_for: ClassVar[str | None] = None
    like: ClassVar[Card] = card("H100")
    arch: ClassVar[int] = DEFAULT_ARCH  # the capability to compile for

    def __init__(self) -> None:
        self.utils, self.launcher_cls = Utilities(), Launcher

    @staticmethod
    def is_active() -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        from triton.backends.nvidia.driver import ty_to_cpp

        return ty_to_cpp(ty)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.arch, 32)

    def get_current_device(self) -> int:
        return simulator.default_device().number

    def set_current_device(self, device: int) -> None:
        if device != self.get_current_device():
            raise ValueError(f"device {device} does not exist; the one simulated device is {self.get_current_device()}")

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_device_interface(self):
        raise RuntimeError(NO_CLOCK)  # who asks wants times: do_bench divides by one, for which NaN will not do

    def get_benchmarker(self):
        return self.get_device_interface


@functools.cache
def replace_nvidia() -> None:
    """Give Triton this backend and driver in place of NVIDIA's, and let it take NumPy arrays."""
    backends["nvidia"] = Backend(SimulatorBackend, SimulatorDriver)
    active_driver.set_active(SimulatorDriver())
    specialize = jit.native_specialize_impl
    jit.native_specialize_impl = lambda backend, value, *rest: specialize(backend, as_tensor(value), *rest)
    by_time = Autotuner._bench
    Autotuner._bench = lambda tuner, *args, **meta: (
        _first_that_compiles(tuner, *args, **meta)
        if SimulatorDriver.tune_for is None
        else _by_estimate(by_time, tuner, *args, **meta)
    )
    CompiledKernel.n_regs = _of_machine_code("registers")
    CompiledKernel.n_spills = _of_machine_code("spill_bytes")


def _first_that_compiles(tuner: Autotuner, *args, config, **meta) -> list[float]:
    """Stand for a measurement: the first configuration that compiles and fits on the device is the fastest."""
    nargs = tuner.nargs
    if getattr(tuner, "_warplab_tuned", None) is nargs:
        return _UNTIMED
    current = meta | config.all_kwargs()
    if config.pre_hook is not None:
        config.pre_hook({**nargs, **current})
    try:
        tuner.fn.run(*args, **{**current, "warmup": True})._init_handles()
    except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
        return _UNTIMED
    tuner._warplab_tuned = nargs
    return [0.0] * 3


def _by_estimate(by_time: Callable, tuner: Autotuner, *args, **meta) -> list[float]:
    """Stand for a measurement: run the configuration once, and return the estimated seconds of what it launches."""

    def estimated(run: Callable[[], None], quantiles) -> list[float]:
        from warplab.estimating.estimate import estimate

        launches = profiling.RecordedLaunches()
        profiling.collect(launches)
        try:
            run()
        finally:
            profiling.stop(launches)
        assert SimulatorDriver.tune_for is not None
        return [sum(estimate(launch, SimulatorDriver.tune_for).seconds for launch in launches)] * len(quantiles)

    tuner.do_bench = estimated
    return by_time(tuner, *args, **meta)


def _of_machine_code(name: str) -> property:
    """Return a property of compiled kernels that NVIDIA's assembler tells, when it is first asked for."""

    def find(kernel: CompiledKernel) -> int:
        kernel._init_handles()
        arch = kernel.metadata.target.arch
        return getattr(resources.reported(assembled(kernel.function[1], kernel.metadata, arch), arch), name)

    return property(find, lambda kernel, value: None)
