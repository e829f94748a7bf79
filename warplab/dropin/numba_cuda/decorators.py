"""`cuda.jit` on the simulator."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from warplab.dropin.numba_cuda.dispatcher import CUDADispatcher, argument_types, device_function
from warplab.launch.kernel_source import NumbaSource

_OPTIONS = ("extensions", "fastmath", "max_registers")


def jit(
    func_or_sig=None,
    device: bool = False,
    inline="never",
    forceinline: bool = False,
    link=(),
    debug: bool | None = None,
    opt: bool | None = None,
    lineinfo: bool = False,
    cache: bool = False,
    launch_bounds: int | tuple[int, ...] | None = None,
    lto: bool | None = None,
    shared_memory_carveout=None,
    **options,
):
    """Compile a Python function for the GPU; takes the arguments of `numba.cuda.jit`.

    A kernel is compiled when it is launched, or at once for the signatures given. Lines are always recorded, bounds
    always checked. `max_registers` matters only to `get_regs_per_thread()` and its like; `cache`, `lto` and
    `shared_memory_carveout` have no effect. Raises NotImplementedError for `extensions`.
    """
    from numba.cuda.core import sigutils

    _check_options(options, device, link)
    debug, opt = bool(debug), opt is not False
    if debug and opt and not device:
        warnings.warn(
            "numba.cuda asks for opt=False where debug=True is given; give both, as a GPU may crash otherwise",
            stacklevel=2,
        )
    if sigutils.is_signature(func_or_sig):
        signatures = [func_or_sig]
    elif isinstance(func_or_sig, list):
        signatures = func_or_sig
    else:
        signatures = None

    def decorate(function: Callable):
        fastmath = bool(options.get("fastmath", False))
        inlining = {"inline": inline, "forceinline": forceinline}
        if device:
            device_options = {"fastmath": fastmath, "opt": opt, "debug": debug, **inlining}
            return device_function(function, func_or_sig if signatures is not None else None, device_options)
        source = NumbaSource(
            function,
            fastmath=fastmath,
            opt=opt,
            launch_bounds=launch_bounds,
            debug=debug,
            link=tuple(link),
            max_registers=options.get("max_registers"),
        )
        kernel = CUDADispatcher(source)
        if signatures is not None:
            source.signatures = [argument_types(signature) for signature in signatures]
            for types in source.signatures:
                source.compile(types)
        return kernel

    return decorate if signatures is not None or func_or_sig is None else decorate(func_or_sig)


def _check_options(options: dict, device: bool, link) -> None:
    if options.get("boundscheck"):
        raise NotImplementedError(
            "bounds checking is not supported for CUDA; the simulator checks bounds without being asked"
        )
    unknown = sorted(set(options) - {*_OPTIONS, "boundscheck"})
    if unknown:
        raise TypeError(f"cuda.jit has no option {', '.join(unknown)}")
    if options.get("extensions"):
        raise NotImplementedError("extensions of cuda.jit are not on the simulator: convert the arguments yourself")
    if device and link:
        raise ValueError("link keyword invalid for device function: give it to the kernel, or to cuda.declare_device")
