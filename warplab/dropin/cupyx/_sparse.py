"""cupyx.scipy.sparse on the simulator: matrices whose parts are device arrays, by SciPy's of the same names."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from warplab.dropin.cupy._core.core import _device, ndarray, to_host
from warplab.dropin.cupy._core.missing import small_module as _small_module

_PARTS = ("data", "indices", "indptr", "row", "col", "offsets")
_FACTS = ("dtype", "format", "has_canonical_format", "has_sorted_indices", "ndim", "nnz", "shape", "size")
_METHODS = """
    argmax argmin asformat astype ceil conj conjugate copy count_nonzero diagonal dot expm1 floor getcol getnnz getrow
    log1p max maximum mean min minimum multiply power reshape rint sign sin sorted_indices sqrt sum tan tanh toarray
    tocoo tocsc tocsr todense todia transpose trunc
    __abs__ __add__ __eq__ __ge__ __getitem__ __gt__ __le__ __lt__ __matmul__ __mul__ __ne__ __neg__ __pow__ __radd__
    __rmatmul__ __rmul__ __rsub__ __sub__ __truediv__
"""
_IN_PLACE = "eliminate_zeros setdiag sort_indices sum_duplicates __setitem__"
_FUNCTIONS = "bmat diags eye hstack identity kron kronsum rand random spdiags tril triu vstack"
_OF_LINALG = "eigsh lsqr norm spsolve svds"


def _scipy(module: str = "scipy.sparse") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise AttributeError(f"cupyx.{module} is SciPy's here: pip install scipy") from None


def _host(value: Any) -> Any:
    if isinstance(value, spmatrix):
        return value._host
    return type(value)(map(_host, value)) if type(value) in (tuple, list) else to_host(value)


def _put(result: Any) -> Any:
    """Put a result of SciPy on the device."""
    if type(result).__name__ in _CLASSES:
        made = object.__new__(_CLASSES[type(result).__name__])
        made._take(result, [])
        return made
    if type(result) is tuple:
        return tuple(map(_put, result))
    return _device(np.asarray(result) if isinstance(result, np.ndarray) else result, [])


def _leaves(value: Any) -> list:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


class spmatrix:
    """A sparse matrix of bool, float or complex numbers."""

    __array_ufunc__ = None  # so that operators of arrays leave it to those of matrices

    def __init__(self, arg1: Any, shape=None, dtype=None, copy: bool = False) -> None:
        made = getattr(_scipy(), type(self).__name__)(_host(arg1), shape=shape, dtype=dtype, copy=copy)
        self._take(made, [] if copy else _leaves(arg1))

    def _take(self, host: Any, given: list) -> None:
        """Be the matrix `host`. `given`: what it was made of, whose memory it shares where nothing was converted."""
        if host.dtype.char not in "?fdFD":
            raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
        self.__dict__["_host"] = host
        for place, name in enumerate(name for name in _PARTS if hasattr(host, name)):
            own, part = getattr(host, name), given[place] if place < len(given) else None
            same = isinstance(part, ndarray) and (part.dtype, part.shape) == (own.dtype, own.shape)
            setattr(self, name, part if same else ndarray._from_host(own))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._host, name, to_host(value))
        if name in _PARTS:
            self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        if name in _FACTS:
            return getattr(self._host, name)
        raise AttributeError(f"{type(self).__name__}.{name} is not on the simulator; get() copies the matrix to SciPy")

    @property
    def T(self) -> spmatrix:
        return self.transpose()

    def get(self, stream=None) -> Any:
        """Return a copy as SciPy's matrix."""
        return self._host.copy()

    def __repr__(self) -> str:
        return repr(self._host)


def _method(name: str, in_place: bool = False):
    def method(self, *args, **kwargs):
        host = self._host.copy() if in_place else self._host
        result = getattr(host, name)(*map(_host, args), **{key: _host(value) for key, value in kwargs.items()})
        if in_place:
            return self._take(host, [])
        return _put(result)

    return method


for _name in (*_METHODS.split(), *_IN_PLACE.split()):
    setattr(spmatrix, _name, _method(_name, _name in _IN_PLACE.split()))
_CLASSES: dict[str, type[spmatrix]] = {
    name: type(name, (spmatrix,), {}) for name in ("coo_matrix", "csc_matrix", "csr_matrix", "dia_matrix")
}


def _functions(names: str, module: str) -> dict[str, Any]:
    def call(name: str, *args, **kwargs):
        host = getattr(_scipy(module), name)
        return _put(host(*map(_host, args), **{key: _host(value) for key, value in kwargs.items()}))

    return {name: functools.partial(call, name) for name in names.split()}


def _is(kind: type, x: Any) -> bool:
    return isinstance(x, kind)


sparse = _small_module(
    "cupyx.scipy.sparse",
    spmatrix=spmatrix,
    **_CLASSES,
    **dict.fromkeys(("issparse", "isspmatrix"), functools.partial(_is, spmatrix)),
    **{f"isspmatrix_{name[:3]}": functools.partial(_is, kind) for name, kind in _CLASSES.items()},
    **_functions(_FUNCTIONS, "scipy.sparse"),
    linalg=_small_module("cupyx.scipy.sparse.linalg", **_functions(_OF_LINALG, "scipy.sparse.linalg")),
)
