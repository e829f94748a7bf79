"""`ReductionKernel`: a program's map and reduce expressions, compiled and run on the simulator.

The kernel is CuPy's (cupy/_core/_reduction.pyx): blocks of 512 threads, of which each group reduces one output by a
tree in shared memory, neighbouring outputs to neighbouring threads where memory is contiguous.
"""

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from warplab.dropin.cupy._core._carray import C_TYPES, Indexer
from warplab.dropin.cupy._core._kernel import (
    Types,
    _Kernel,
    as_scalars,
    broadcast,
    check_argument,
    check_name,
    decide_types,
    declared,
    join_axes,
    outputs,
    parameters,
    typedefs,
)
from warplab.dropin.cupy._core.core import ndarray

_THREADS = 512
_CODE = """{typedefs} typedef {index} IndexT;
{preamble}
#define REDUCE(a, b) ({reduce_expr})
#define POST_MAP(a) ({post_map_expr})
typedef {reduce_type} _type_reduce;
extern "C" __global__ void {name}({params}) {{
  __shared__ __align__(16) char _sdata_raw[{threads} * sizeof(_type_reduce)];
  _type_reduce *_sdata = reinterpret_cast<_type_reduce*>(_sdata_raw);
  unsigned int _tid = threadIdx.x;
  IndexT _J_offset = _tid >> __popc(_block_stride - 1);  // _tid / _block_stride
  ptrdiff_t _j_offset = (ptrdiff_t)_J_offset * _out_ind.size();
  IndexT _J_stride = {threads} >> __popc(_block_stride - 1);
  ptrdiff_t _j_stride = (ptrdiff_t)_J_stride * _out_ind.size();
  for (ptrdiff_t _i_base = (ptrdiff_t)blockIdx.x * _block_stride; _i_base < _out_ind.size();
       _i_base += (ptrdiff_t)gridDim.x * _block_stride) {{
    _type_reduce _s = _type_reduce({identity});
    ptrdiff_t _i = _i_base + (_tid & (_block_stride - 1));  // _tid % _block_stride
    IndexT _J = _J_offset;
    for (ptrdiff_t _j = _i + _j_offset; _j < _in_ind.size(); _j += _j_stride, _J += _J_stride) {{
      _in_ind.set(_j);
      {inputs}
      _type_reduce _a = static_cast<_type_reduce>({map_expr});
      _s = REDUCE(_s, _a);
    }}
    _sdata[_tid] = _s;
    __syncthreads();
    for (unsigned int _block = {threads} / 2; _block >= _block_stride; _block >>= 1) {{
      if (_tid < _block) {{
        _type_reduce _a = _sdata[_tid], _b = _sdata[_tid + _block];
        _sdata[_tid] = REDUCE(_a, _b);
      }}
      __syncthreads();
    }}
    if (_tid < _block_stride) _s = _sdata[_tid];
    if (_tid < _block_stride && _i < _out_ind.size()) {{
      _out_ind.set(_i);
      {outputs}
      POST_MAP(_s);
    }}
  }}
}}
"""


class ReductionKernel(_Kernel):
    """A kernel that maps elements by `map_expr` and combines the results by `reduce_expr`, C++ over `a` and `b`.

    `post_map_expr`: a statement over the result `a`, such as "y = sqrt(a)". `identity`: what the reduction begins with.
    `in_params`, `out_params`, `preamble` and further parameters: as in `ElementwiseKernel` and CuPy.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        check_name(name)
        self.in_params, self.out_params = parameters(in_params, True), parameters(out_params, False)
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.nargs = self.nin + self.nout
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.name = self.__name__ = name
        self.reduce_type = self.out_params[0].c_type if reduce_type is None else reduce_type
        self.reduce_dims, self.preamble, self.options = reduce_dims, preamble, tuple(options)
        if self.reduce_type not in ("", self.out_params[0].c_type, *C_TYPES):
            self._checks = {"used_reads_only": True}  # a struct is copied with the bytes between its members

    def __call__(self, *args, out: ndarray | None = None, axis=None, keepdims: bool = False, stream=None, **kwargs):
        """Run the kernel. `args`: its inputs, and the output unless a new one is wanted. `axis`: int or tuple, the axes
        over which it reduces; None for all. Returns the first output. Raises TypeError, ValueError, and CompileError
        for the expressions."""
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name}")
        given = list(args[self.nin :])
        if out is not None:
            if self.nout != 1:
                raise NotImplementedError("`out` is for kernels with one output")
            if given:
                raise ValueError("cannot specify 'out' as both a positional and keyword argument")
            given = [out]
        given = [check_argument(value) for value in given]
        ins, shape = broadcast([check_argument(value) for value in args[: self.nin]], self.in_params)
        letters = decide_types(self.in_params, self.out_params, ins, given)
        over = normalize_axis_tuple(range(len(shape)) if axis is None else axis, len(shape))
        kept = tuple(k for k in range(len(shape)) if k not in over)
        if len(ins) == 1 and len(kept) <= 1 and not ins[0].flags.c_contiguous:  # so that axes can be joined
            over = tuple(sorted(over, key=lambda k: -abs(ins[0].strides[k])))
        else:
            over = tuple(sorted(over))
        lengths = tuple(1 if k in over else n for k, n in enumerate(shape) if keepdims or k in kept)
        made = outputs(given, self.out_params, letters, lengths, False)
        if made[0].size == 0:
            return made[0]
        if not self.identity and 0 in shape:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        self._reduce(as_scalars(ins, self.in_params, letters), made, letters, shape, (*over, *kept), lengths)
        return made[0]

    def _reduce(self, ins: list, made: list, letters: Types, shape: tuple, order: tuple, out_shape: tuple) -> None:
        if order != tuple(range(len(shape))):
            if any(parameter.raw for parameter in self.in_params):
                raise NotImplementedError("Illegal conditions")  # as CuPy says it
            ins = [value.transpose(order) if isinstance(value, ndarray) else value for value in ins]
            shape = tuple(shape[k] for k in order)
        if self.reduce_dims:
            ins, shape = join_axes(ins, self.in_params, shape)
            made, out_shape = join_axes(made, self.out_params, out_shape)
        size, out_size = math.prod(shape), math.prod(out_shape)
        stride = max(self._contiguous(ins, out_shape, len(shape)), _THREADS // max(1, size // out_size))
        stride = 1 << (stride.bit_length() - 1)  # rounded down to a power of two
        indexers = [Indexer(shape), Indexer(out_shape)]
        params = (*self.in_params, *self.out_params)
        names = (*(parameter.name for parameter in params), "_in_ind", "_out_ind", "_block_stride")
        used = [*ins, *made]
        code = self._code(used, letters, indexers, "int" if size // out_size < 2**31 else "long long")
        blocks = -(-out_size // stride)
        self._run(code, names, self.options, blocks * _THREADS, _THREADS, [*used, *indexers, np.int32(stride)])

    def _contiguous(self, ins: list, out_shape: tuple[int, ...], ndim: int) -> int:
        """Return how many outputs, at most 32, read neighbouring elements."""
        most = 1
        for value, parameter in zip(ins, self.in_params, strict=True):
            if not isinstance(value, ndarray) or parameter.raw:
                continue
            run = 1
            for k in range(len(out_shape)):
                if value.strides[ndim - k - 1] != run * value.itemsize:
                    break
                run *= out_shape[-k - 1]
            most = max(most, run)
        return min(most, 32)

    def _code(self, args: list, letters: Types, indexers: list[Indexer], index: str) -> str:
        params = (*self.in_params, *self.out_params)
        arrays = [(isinstance(v, ndarray) and not p.raw, p) for v, p in zip(args, params, strict=True)]
        inputs = [
            f"{'const ' * p.const}{p.c_type} {'&' * (not p.const)}{p.name} = _raw_{p.name}[_in_ind.get()];"
            for looped, p in arrays[: self.nin]
            if looped
        ]
        outs = [f"{p.c_type} &{p.name} = _raw_{p.name}[_out_ind.get()];" for looped, p in arrays[self.nin :] if looped]
        into, out_of = indexers
        declarations = [*declared(args, params), f"{into.c_type} _in_ind", f"{out_of.c_type} _out_ind"]
        return _CODE.format(
            typedefs=typedefs(letters),
            index=index,
            preamble=self.preamble,
            reduce_expr=self.reduce_expr,
            post_map_expr=self.post_map_expr,
            reduce_type=self.reduce_type,
            name=self.name,
            params=", ".join([*declarations, "const int _block_stride"]),
            threads=_THREADS,
            identity=self.identity,
            inputs="\n      ".join(inputs),
            map_expr=self.map_expr,
            outputs="\n      ".join(outs),
        )
