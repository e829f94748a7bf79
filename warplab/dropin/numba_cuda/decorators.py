"""`cuda.jit` on the simulator."""

import warnings
from collections.abc import Callable

from numba.cuda import types

from warplab.compile import numba_internals
from warplab.dropin.numba_cuda.dispatcher import CUDADispatcher

_OPTIONS = ("extensions", "fastmath", "max_registers", "boundscheck")
_NO_LONGER = ("argtypes", "restype", "bind")


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
    always checked. `cache=True` keeps PTX in files, which the next process reads. `max_registers` matters only to
    `get_regs_per_thread()` and its like; `lto` and `shared_memory_carveout` have no effect.
    """
    _check_options(options, device, link)
    if shared_memory_carveout is not None:
        numba_internals.validate_shared_memory_carveout(shared_memory_carveout)
    if isinstance(inline, bool):
        inline = "always" if inline else "never"
    debug = bool(numba_internals.config.CUDA_DEBUGINFO_DEFAULT) if debug is None else bool(debug)
    opt = numba_internals.config.OPT != 0 if opt is None else bool(opt)
    _warn_of_debug(debug, opt, lineinfo)
    target = {
        "device": device,
        "inline": inline,
        "forceinline": forceinline,
        "link": link,
        "debug": debug,
        "opt": opt,
        "lineinfo": not debug,
        "launch_bounds": launch_bounds,
        "fastmath": bool(options.get("fastmath", False)),
        "max_registers": options.get("max_registers"),
        "extensions": list(options.get("extensions") or []),
    }
    if numba_internals.is_signature(func_or_sig):
        signatures = [func_or_sig]
    elif isinstance(func_or_sig, list):
        signatures = func_or_sig
    else:
        signatures = None

    def decorate(function: Callable) -> CUDADispatcher:
        # As in Numba, the kernels of one decorator each have a list of extensions of their own.
        made = CUDADispatcher(function, {**target, "extensions": list(target["extensions"])})
        if cache:
            made.enable_caching()
        if signatures is not None:
            _compile(made, signatures, device)
            made._specialized = not isinstance(func_or_sig, list)
            made.disable_compile()
        return made

    return decorate if signatures is not None or func_or_sig is None else decorate(func_or_sig)


def _compile(made: CUDADispatcher, signatures: list, device: bool) -> None:
    for signature in signatures:
        arguments, result = numba_internals.normalize_signature(signature)
        if device:
            with numba_internals.register_dispatcher(made):
                made.compile_device(arguments, result)
        elif result is not None and result != types.void:
            raise TypeError("CUDA kernel must have void return type.")
        else:
            made.compile(arguments)


def _warn_of_debug(debug: bool, opt: bool, lineinfo: bool) -> None:
    if debug and opt:
        message = (
            "debug=True with opt=True is not supported by CUDA. This may result in a crash - set debug=False or "
            "opt=False."
        )
        warnings.warn(numba_internals.NumbaInvalidConfigWarning(message), stacklevel=3)
    if debug and lineinfo:
        message = "debug and lineinfo are mutually exclusive; on the simulator lines are recorded either way"
        warnings.warn(numba_internals.NumbaInvalidConfigWarning(message), stacklevel=3)


def _check_options(options: dict, device: bool, link) -> None:
    if options.get("boundscheck"):
        raise NotImplementedError(
            "bounds checking is not supported for CUDA; the simulator checks bounds without being asked"
        )
    for name in _NO_LONGER:
        if options.get(name) is not None:
            raise numba_internals.DeprecationError(
                f"Deprecated keyword argument `{name}`. Signatures should be passed as the first positional argument."
            )
    # Numba's own tests have some that begin with an underscore, for its compiler.
    unknown = sorted(name for name in set(options) - {*_OPTIONS, *_NO_LONGER} if not name.startswith("_"))
    if unknown:
        raise TypeError(f"cuda.jit has no option {', '.join(unknown)}")
    if device and link:
        raise ValueError("link keyword invalid for device function: give it to the kernel, or to cuda.declare_device")
