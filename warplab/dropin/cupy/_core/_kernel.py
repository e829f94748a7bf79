"""`ElementwiseKernel`: a loop over all elements around a program's snippet, compiled and run on the simulator.

Rules and messages are those of CuPy (cupy/_core/_kernel.pyx): the loop, types of one letter, broadcasting, axes that
are joined where memory allows it.
"""

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.dropin.cupy._core._carray import TEXTURE, GeneratedKernel, Indexer, c_type, type_name
from warplab.dropin.cupy._core.core import ndarray
from warplab.dropin.cupy.cuda.texture import TextureObject
from warplab.launch.device_arrays import DeviceArray

_LOOP = """{typedefs}
{preamble}
extern "C" __global__ void {name}({params}) {{
  {loop_prep};
  #pragma unroll 1
  CUPY_FOR(i, _ind.size()) {{
    _ind.set(i);
    {operation};
  }}
  {after_loop};
}}
"""
_SCALARS = (bool, int, float, complex, np.generic)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: "raw T x". `dtype`: None for a type of one letter, which arguments decide."""

    name: str
    letter: str
    dtype: np.dtype | None
    raw: bool
    const: bool

    @property
    def c_type(self) -> str:
        return self.letter if self.dtype is None else type_name(self.dtype)


@functools.lru_cache(maxsize=512)
def parameters(text: str, const: bool) -> tuple[Parameter, ...]:
    """Read a list of parameters: "T x, raw float32 y". Raises Exception for its mistakes, as CuPy does."""
    found = []
    for part in text.strip().split(",") if text.strip() else ():
        *keywords, kind, name = part.split() if len(part.split()) > 1 else (part, "", "")
        if not name:
            raise Exception(f"Syntax error: {part}")
        unknown = [word for word in keywords if word not in ("raw", "_non_const")]
        if unknown:
            raise Exception(f'Unknown keyword "{unknown[0]}"')
        dtype = None if len(kind) == 1 else np.dtype(kind)
        if dtype is not None:
            type_name(dtype)
        found.append(Parameter(name, kind, dtype, "raw" in keywords, const and "_non_const" not in keywords))
    return tuple(found)


def check_name(name: str) -> None:
    """Raise ValueError for what cannot be the name of a kernel."""
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z_0-9]*", name):
        raise ValueError(f'Invalid kernel name: "{name}"')


def check_argument(value) -> Any:
    """Return an argument as kernels take it: a device array, a texture or a number. TypeError for any other."""
    if isinstance(value, DeviceArray):
        value._buffer.device.synchronize()
        return value if isinstance(value, ndarray) else ndarray._wrap(value._buffer, value._view)
    if isinstance(value, (TextureObject, *_SCALARS)):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


Types = dict[str, np.dtype]


def decide_types(ins: tuple[Parameter, ...], outs: tuple[Parameter, ...], in_args: list, out_args: list) -> Types:
    """Return the dtype of each type of one letter. Raises TypeError where arguments do not fit."""
    letters: Types = {}
    for parameter, value in [*zip(outs, out_args, strict=False), *zip(ins, in_args, strict=True)]:
        own = _dtype_of(value)
        if own is None:
            continue
        wanted = letters.setdefault(parameter.letter, own) if parameter.dtype is None else parameter.dtype
        if wanted != own:
            letter = "" if parameter.dtype is not None else f" {parameter.letter}"
            raise TypeError(f"Type is mismatched. {parameter.name} {own} {wanted}{letter}")
    for parameter in (*ins, *outs):
        if parameter.dtype is None and parameter.letter not in letters:
            raise TypeError(
                f"type {parameter.letter} of {parameter.name} is unknown, as no array has it: give an array, or write "
                f"the type, such as float32 {parameter.name}"
            )
    return letters


def _dtype_of(value) -> Any:
    if isinstance(value, ndarray):
        return value.dtype
    return TEXTURE if isinstance(value, TextureObject) else None


def type_of(parameter: Parameter, letters: Types) -> np.dtype:
    return letters[parameter.letter] if parameter.dtype is None else parameter.dtype


def typedefs(letters: Types) -> str:
    return " ".join(f"typedef {type_name(dtype)} {letter};" for letter, dtype in sorted(letters.items()))


def broadcast(args: list, params: tuple[Parameter, ...], use_size: bool = False) -> tuple[list, tuple[int, ...]]:
    """Return the arguments with arrays that are not raw stretched to one shape, and that shape."""
    places = [k for k, value in enumerate(args) if isinstance(value, ndarray) and not params[k].raw]
    if use_size and places:
        raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
    if not use_size and not places:
        raise ValueError("Loop size is undecided.")
    if not places:
        return args, ()
    try:
        shape = np.broadcast_shapes(*(args[k].shape for k in places))
    except ValueError:
        shapes = " ".join(str(args[k].shape) for k in places)
        raise ValueError(f"operands could not be broadcast together with shapes {shapes}") from None
    stretched = list(args)
    for k in places:
        stretched[k] = ndarray._wrap(args[k]._buffer, np.broadcast_to(args[k]._view, shape))
    return stretched, shape


def outputs(args: list, outs: tuple[Parameter, ...], letters: Types, shape: tuple[int, ...], sized: bool) -> list:
    """Return the output arrays: those given, or new ones."""
    if not args:
        if any(parameter.raw and not sized for parameter in outs):
            raise ValueError("Output array size is Undecided")
        return [ndarray(shape, type_of(parameter, letters)) for parameter in outs]
    for parameter, value in zip(outs, args, strict=True):
        if not isinstance(value, ndarray):
            raise TypeError("Output arguments type must be cupy.ndarray")
        if not parameter.raw and value.shape != shape:
            raise ValueError("Out shape is mismatched")
    return args


def as_scalars(args: list, ins: tuple[Parameter, ...], letters: Types) -> list:
    """Return the arguments with numbers of the types that the kernel takes."""
    kept = (ndarray, TextureObject)
    return [
        value if isinstance(value, kept) else np.asarray(value).astype(type_of(parameter, letters))[()]
        for value, parameter in zip(args, ins, strict=True)
    ]


def join_axes(args: list, params: tuple[Parameter, ...], shape: tuple[int, ...]) -> tuple[list, tuple[int, ...]]:
    """Return the arrays with as few axes as their strides allow, and the shape of the loop."""
    places = [k for k, value in enumerate(args) if isinstance(value, ndarray) and not params[k].raw]
    scattered = [args[k].strides for k in places if not args[k].flags.c_contiguous]
    if len(shape) <= 1 or not places or (scattered and len(shape) == 2 and len(args) > 1):
        return args, shape
    if not scattered:
        flat = [ndarray._wrap(v._buffer, v._view.reshape(-1)) if k in places else v for k, v in enumerate(args)]
        return flat, (int(np.prod(shape)),)
    joined: list[list[int]] = []  # axes that become one
    for axis in (axis for axis in range(len(shape)) if shape[axis] != 1):
        last = joined[-1][-1] if joined else None
        if last is not None and all(strides[axis] * shape[axis] == strides[last] for strides in scattered):
            joined[-1].append(axis)
        else:
            joined.append([axis])
    if len(joined) == len(shape):
        return args, shape
    lengths = tuple(int(np.prod([shape[axis] for axis in axes])) for axes in joined)
    reduced = list(args)
    for k in places:
        view = args[k]._view
        strides = tuple(view.strides[axes[-1]] for axes in joined)
        reduced[k] = ndarray._wrap(args[k]._buffer, np.lib.stride_tricks.as_strided(view, lengths, strides))
    return reduced, lengths


def declared(args: list, params: tuple[Parameter, ...]) -> list[str]:
    """Return the parameters of the function in C++."""
    return [
        f"{'const ' * parameter.const}{c_type(value)} {'_raw_' * _looped(value, parameter)}{parameter.name}"
        for value, parameter in zip(args, params, strict=True)
    ]


def _looped(value, parameter: Parameter) -> bool:
    return isinstance(value, ndarray) and not parameter.raw


class _Kernel:
    """What both kinds of kernels share: their generated code by the types that it was made for."""

    name: str

    def __init__(self) -> None:
        self._checks: dict[str, bool] = {}  # options of the launch
        self._compiled: dict[str, GeneratedKernel] = {}
        self.cached_codes: dict[tuple[np.dtype, ...], str] = {}

    @property
    def cached_code(self) -> str:
        """Return the code that was generated last."""
        return next(reversed(self.cached_codes.values()))

    def _run(self, code: str, names: tuple[str, ...], options: tuple[str, ...], size: int, threads: int, args: list):
        kernel = self._compiled.get(code)
        if kernel is None:
            kernel = self._compiled[code] = GeneratedKernel(code, self.name, names, options)
            self.cached_codes[tuple(value.dtype for value in args if isinstance(value, ndarray))] = code
        kernel.launch(-(-size // threads), min(threads, size), tuple(args), **self._checks)


class ElementwiseKernel(_Kernel):
    """A kernel that runs `operation`, C++ statements over the parameters, for each element.

    `in_params`, `out_params`: as "T x, raw float32 y"; a type of one letter is that of the argument. `preamble`: code
    before the function; `loop_prep`, `after_loop`: in it, around the loop. `i` is the number of the element, and
    `_ind.size()` that of all. Further parameters are CuPy's.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        loop_prep: str = "",
        after_loop: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        check_name(name)
        self.in_params, self.out_params = parameters(in_params, True), parameters(out_params, False)
        self.params = (*self.in_params, *self.out_params)
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        if "i" in (parameter.name for parameter in self.params):
            raise ValueError("Can not use 'i' as a parameter name")
        self.operation, self.name, self.__name__ = operation, name, name
        self.reduce_dims, self.preamble, self.no_return = reduce_dims, preamble, no_return
        self.return_tuple, self.options = return_tuple, tuple(options)
        self._around = loop_prep, after_loop

    def __call__(self, *args, size: int = -1, stream=None, block_size: int = 128, **kwargs):
        """Run the kernel. `args`: its inputs, and outputs unless new ones are wanted; device arrays are stretched to
        one shape. `size`: of the loop, where all arrays are raw. Returns the outputs. Raises TypeError, ValueError, and
        CompileError for the snippet."""
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if block_size <= 0:
            raise ValueError("block_size must be greater than zero")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} (with "
                f"outputs), but given {len(args)}."
            )
        checked = [check_argument(value) for value in args]
        stretched, shape = broadcast(checked, self.params, size != -1)
        given = checked[self.nin :]
        letters = decide_types(self.in_params, self.out_params, stretched[: self.nin], given)
        shape = shape if size == -1 else (size,)
        made = outputs(given, self.out_params, letters, shape, size != -1)
        result = None if self.no_return else made[0] if self.nout == 1 and not self.return_tuple else tuple(made)
        if 0 in shape:
            return result
        used = [*as_scalars(stretched[: self.nin], self.in_params, letters), *made]
        if self.reduce_dims:
            used, shape = join_axes(used, self.params, shape)
        indexer = Indexer(shape)
        names = (*(parameter.name for parameter in self.params), "_ind")
        self._run(self._code(used, letters, indexer), names, self.options, indexer.size, block_size, [*used, indexer])
        return result

    def _code(self, args: list, letters: Types, indexer: Indexer) -> str:
        elements = [
            f"{'const ' * p.const}{p.c_type} &{p.name} = _raw_{p.name}[_ind.get()];"
            for value, p in zip(args, self.params, strict=True)
            if _looped(value, p)
        ]
        loop_prep, after_loop = self._around
        return _LOOP.format(
            typedefs=typedefs(letters),
            preamble=self.preamble,
            name=self.name,
            params=", ".join([*declared(args, self.params), f"{indexer.c_type} _ind"]),
            loop_prep=loop_prep,
            operation="\n    ".join([*elements, self.operation]),
            after_loop=after_loop,
        )
