"""CuPy's routines on the simulator, against NumPy's of the same name."""

from __future__ import annotations

import inspect

import cupy
import numpy as np
import pytest

from tests.warplab.dropin.cupy.arrays import random_array
from warplab.dropin import cupy as cp
from warplab.dropin.cupy._core.missing import known

# Each is evaluated with cupy and numpy as `xp` and the arrays below; several answers in a tuple.
EXPRESSIONS = """
    xp.angle(c)  xp.append(v, w)  xp.argpartition(v, 3)[3]  xp.around(v, 1)  xp.array_equiv(m, m)  xp.array_split(v, 4)
    xp.astype(v, 'i4')  xp.atleast_1d(v, 3)  xp.atleast_2d(v)  xp.atleast_3d(v)  xp.bartlett(9)  xp.blackman(9)
    xp.broadcast_arrays(v[:4], m)  xp.choose(k % 3, [k, k + 1, k + 2])  xp.column_stack((v, w))  xp.compress(k > 3, k)
    xp.concat((v, w))  xp.convolve(v, w)  xp.copy(m)  xp.corrcoef(m)  xp.correlate(v, w)  xp.cov(m)
    xp.cross(m[:, :3], m[:, 1:4])  xp.cumulative_sum(v)  xp.cumulative_prod(v)  xp.delete(v, 3)  xp.diag_indices(3)
    xp.diagflat(v)  xp.digitize(v, xp.sort(w))  xp.dsplit(t, 2)  xp.dstack((v, w))  xp.ediff1d(v)  xp.extract(k > 2, k)
    xp.fix(v)  xp.flatnonzero(k % 2)  xp.fliplr(m)  xp.flipud(m)  xp.fromfunction(lambda i, j: i + j, (3, 4))
    xp.gradient(v)  xp.hamming(9)  xp.hanning(9)  xp.histogram2d(v, w, 4)  xp.histogramdd(m[:, :2], 3)  xp.hsplit(m, 2)
    xp.i0(v)  xp.imag(c)  xp.indices((2, 3))  xp.interp(v, xp.sort(w), v)  xp.intersect1d(k, k + 5)  xp.iscomplex(c)
    xp.isin(k, k[:3])  xp.isneginf(v)  xp.isposinf(v)  xp.isreal(c)  xp.ix_(k % 2, k % 3)  xp.kaiser(9, 5)
    xp.kron(v, w)  xp.lexsort(xp.stack((k % 3, k)))  xp.matrix_transpose(m)  xp.meshgrid(v, w)  xp.mgrid[0:3, 1:2:5j]
    xp.nan_to_num(v)  xp.nanargmax(v)  xp.nancumsum(v)  xp.nanmedian(v)  xp.nanprod(v)  xp.nanstd(v)  xp.nanvar(v)
    xp.ogrid[0:3, 1:5]  xp.packbits(k % 2)  xp.partition(v, 3)[3]  xp.permute_dims(t, (2, 0, 1))  xp.polyfit(v, w, 2)
    xp.polyval(v, w)  xp.quantile(v, 0.3)  xp.r_[1:5, k, 0]  xp.c_[v, w]  xp.ravel_multi_index((k % 2, k % 3), (2, 3))
    xp.real(c)  xp.resize(v, (3, 7))  xp.rollaxis(t, 2)  xp.roots(v[:4])  xp.rot90(m)
    xp.select([v > 0, v < -1], [v, w])
    xp.setdiff1d(k, k[:4])  xp.setxor1d(k, k + 5)  xp.sinc(v)  xp.sort_complex(c)
    xp.take_along_axis(m, m.argsort(1), 1)
    xp.trapezoid(v, w)  xp.tri(3, 4)  xp.tril_indices(4)  xp.trim_zeros(k)  xp.triu_indices(4)  xp.union1d(k, k + 5)
    xp.unpackbits(k.astype('u1'))  xp.unravel_index(k, (4, 5))  xp.unwrap(v)  xp.vander(v, 3)  xp.vsplit(m, 2)
    xp.apply_along_axis(lambda row: row.sum() + row, 1, m)
    xp.lib.stride_tricks.as_strided(v, (3, 4), (16, 8))
    xp.add.reduce(m, 1)  xp.multiply.accumulate(v)  xp.subtract.outer(v, w)  xp.maximum.reduceat(v, k[:3])
    xp.product(k)  xp.in1d(k, k[:2])  xp.trapz(v)  xp.NaN  xp.infty
    xp.linalg.cholesky(s)  xp.linalg.cond(s)  xp.linalg.det(s)  xp.abs(xp.linalg.eigh(s)[1])  xp.linalg.eigvalsh(s)
    xp.linalg.inv(s)  xp.linalg.lstsq(m, m[:, 0], rcond=None)[0]  xp.linalg.matrix_power(s, 3)
    xp.linalg.norm(m, axis=1)
    xp.linalg.matrix_rank(s)  xp.linalg.norm(v)  xp.linalg.pinv(m)  xp.linalg.qr(s)  xp.linalg.slogdet(s)
    xp.linalg.solve(s, v[:6])  xp.linalg.svd(m)[1]  xp.linalg.tensorsolve(s, v[:6])  xp.sort(xp.linalg.eigvals(s).real)
    xp.fft.fft(v)  xp.fft.ifft(c)  xp.fft.rfft(v, 8)  xp.fft.irfft(c)  xp.fft.fft2(m)  xp.fft.ifft2(m)  xp.fft.fftn(t)
    xp.fft.ifftn(t)  xp.fft.rfft2(m)  xp.fft.irfft2(m)  xp.fft.rfftn(t)  xp.fft.irfftn(t)  xp.fft.hfft(c)
    xp.fft.ihfft(v)  xp.fft.fftfreq(9, 0.1)  xp.fft.rfftfreq(9)  xp.fft.fftshift(m)  xp.fft.ifftshift(v)
"""
# Of these the answer is no array, as in CuPy.
ANSWERS = """
    xp.can_cast('i4', 'f8')  xp.common_type(v, k)  xp.iscomplexobj(c)  xp.isrealobj(v)  xp.isscalar(3)  xp.isscalar(v)
    xp.issubdtype(v.dtype, xp.floating)  xp.min_scalar_type(300)  xp.promote_types('i4', 'f4')
    xp.shares_memory(v, v[1:])
    xp.may_share_memory(v, w)  xp.result_type(v, k)  xp.array_str(k)  xp.array_repr(k)  xp.base_repr(9, 2)
    xp.broadcast_shapes((3, 1), (4,))  xp.typename('d')  xp.isfortran(m)  xp.isdtype(v.dtype, 'integral')
    xp.ubyte(200)  xp.double(0.5)  xp.int_(3).dtype  xp.iinfo('i4').max  xp.s_[1:3]  xp.euler_gamma
"""


def arrays(xp) -> dict:
    s = random_array((6, 6), "f8", 3)
    given = {
        "v": random_array((12,), "f8", 1),
        "w": random_array((12,), "f8", 2),
        "k": np.arange(12),
        "m": random_array((12, 4), "f8", 4),
        "t": random_array((2, 3, 4), "f8", 5),
        "c": random_array((12,), "c16", 6),
        "s": s @ s.T + np.eye(6),
    }
    return {name: xp.asarray(value) for name, value in given.items()}


def old(expression: str) -> str:
    """Return the expression with today's names, where NumPy has given up the old ones."""
    for name, new in {"product": "prod", "in1d": "isin", "trapz": "trapezoid", "NaN": "nan", "infty": "inf"}.items():
        expression = expression.replace(f"xp.{name}", f"xp.{new}")
    return expression


def split(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\n", "  ").split("  ") if part.strip()]


@pytest.mark.parametrize("expression", split(EXPRESSIONS))
def test_as_numpy(expression):
    found = eval(expression, {"xp": cp, **arrays(cp)})
    expected = eval(old(expression), {"xp": np, **arrays(np)})
    several = isinstance(expected, tuple | list)
    assert isinstance(found, tuple | list) == several
    for one, wanted in zip(found if several else (found,), expected if several else (expected,), strict=True):
        if isinstance(wanted, list):  # histogramdd's edges
            one, wanted = one[0], wanted[0]
        if expression not in ("xp.NaN", "xp.infty"):
            assert isinstance(one, cp.ndarray)
            one = one.get()
        assert one.shape == np.shape(wanted) if hasattr(one, "shape") else True
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-12)
        assert np.asarray(one).dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize("expression", split(ANSWERS))
def test_answers_of_the_host(expression):
    found = eval(expression, {"xp": cp, **arrays(cp)})
    assert found == eval(expression, {"xp": np, **arrays(np)})
    assert not isinstance(found, cp.ndarray)


@pytest.mark.parametrize(
    "statement",
    [
        "xp.add.at(v, xp.asarray([0, 0, 3]), 2.5)",
        "xp.maximum.at(v, xp.asarray([0, 1]), 1.0)",
        "xp.fill_diagonal(s, 7)",
        "xp.place(v, v > 0, [1.0, 2.0])",
        "xp.put(v, [1, 3], [8.0, 9.0])",
        "xp.put_along_axis(m, m.argmax(1)[:, None], 0.0, 1)",
        "xp.putmask(v, v > 0, w)",
        "xp.copyto(v, w)",
        "v.put([0, 2], 5.0)",
        "v.partition(3); v.sort()",
        "v += w; v *= 2; v[2:4] = w[:2]; v[v > 1] = 0",
    ],
)
def test_in_place(statement):
    ours, theirs = arrays(cp), arrays(np)
    exec(statement, {"xp": cp, **ours})
    exec(statement, {"xp": np, **theirs})
    for name, array in ours.items():
        np.testing.assert_array_equal(array.get(), theirs[name])


def test_files(tmp_path):
    v = cp.arange(5.0)
    cp.save(tmp_path / "v.npy", v)
    assert cp.load(tmp_path / "v.npy").tolist() == v.tolist()
    cp.savez(tmp_path / "v.npz", v=v)
    cp.savetxt(tmp_path / "v.txt", v)
    assert cp.loadtxt(tmp_path / "v.txt").tolist() == v.tolist()
    (tmp_path / "raw").write_bytes(v.get().tobytes())
    assert cp.fromfile(tmp_path / "raw").tolist() == v.tolist()
    assert cp.frombuffer(v.get().tobytes()).tolist() == v.tolist()


def test_numpy_arrays_are_refused():
    for call in (
        lambda: cp.linalg.inv(np.eye(3)),
        lambda: cp.fft.fft(np.ones(4)),
        lambda: cp.add.at(cp.ones(3), 0, np.ones(3)),
    ):
        with pytest.raises(TypeError, match="Unsupported type"):
            call()
    assert np.linalg.norm.__module__ != cp.__name__


def test_numpys_functions_of_device_arrays_are_those_of_the_same_module():
    a = cp.arange(24.0).reshape(2, 3, 4)
    square = a[:, :3, :3] + 9 * cp.eye(3)
    for found, expected in (
        (np.kron(cp.ones(2), cp.ones(2)), np.ones(4)),
        (np.linalg.det(square), np.linalg.det(square.get())),
        (np.linalg.svd(a, compute_uv=False), np.linalg.svd(a.get(), compute_uv=False)),
        (np.fft.fft(a), np.fft.fft(a.get())),
    ):
        assert isinstance(found, cp.ndarray)
        np.testing.assert_allclose(found.get(), expected)
    with pytest.raises(AttributeError, match=r"'cupy.linalg' has no attribute 'diagonal'"):  # of the last two axes
        np.linalg.diagonal(a)


def test_elementwise_functions_are_ufuncs():
    assert isinstance(cp.add, cp.ufunc)
    assert (cp.add.nin, cp.add.nout, cp.add.name, repr(cp.add)) == (2, 1, "add", "<ufunc 'add'>")


def test_a_function_is_remembered_for_each_argument():
    calls = []

    @cp.memoize(for_each_device=True)
    def square(x):
        calls.append(x)
        return x * x

    assert [square(2), square(3), square(2)] == [4, 9, 4]
    assert calls == [2, 3]
    cp.clear_memo()
    assert (square(2), calls) == (4, [2, 3, 2])


def test_most_of_cupy_is_there():
    """The lists of names are CuPy's own, so nothing is invented, and what is lacking is known."""
    names = [name for name in known("cupy") if not inspect.ismodule(getattr(cupy, name, None))]
    lacking = {name for name in names if not hasattr(cp, name)}
    assert len(names) > 450
    assert len(lacking) < 50
    assert {"poly1d", "broadcast", "show_config"} <= lacking
