"""Lab 13's kernel in Triton, where its extra is installed, against float64."""

import numpy as np
import pytest

pytest.importorskip("triton", reason="Triton is an extra: pip install triton")

from kernels.attention import counting, reference
from kernels.attention.triton_kernels import forward_triton
from tests.support.random_inputs import generator
from warplab import cp

from .bounds import forward_bounds, operands, within

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    """A new cache: what another checkout compiled names the lines of that one's files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


@pytest.mark.parametrize(
    "case",
    [(1, 2, 2, 37, 70, 64, True), (2, 2, 1, 40, 9, 80, True), (1, 1, 1, 130, 150, 128, False)],
    ids=str,
)
def test_triton_computes_the_same(case):
    *sizes, causal = case
    q, k, v = operands(generator(), *sizes, "float16")
    found = forward_triton(*(cp.asarray(x.given) for x in (q, k, v)), causal)
    numbers = q.numbers, k.numbers, v.numbers
    bounds = forward_bounds(*numbers, causal, None, "float16")
    for one, exact, bound in zip(found, reference.forward(*numbers, causal), bounds, strict=True):
        assert within(cp.asnumpy(one).astype(np.float64), exact, bound)


def test_the_lesson_shows_what_is_counted(monkeypatch):
    """Where Triton is not installed the lesson shows what was recorded."""
    monkeypatch.setattr(counting, "forward", lambda *_, **__: None)
    monkeypatch.setattr(counting, "counted_once", lambda call, count=counting.counted_once: call() and count(call))
    assert counting.of_languages()["Triton"] == counting.OF_TRITON
