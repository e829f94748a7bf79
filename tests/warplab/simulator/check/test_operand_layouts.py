"""Which kernels have their operands' layouts checked: those with products of warpgroups and copies by tensor maps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warplab.simulator.check.operand_layouts import has_both
from warplab.simulator.ptx.parser import parse_instruction

PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0"
TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4]"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r4]"


@pytest.mark.parametrize(
    ("texts", "both"), [((PRODUCT, TENSOR), True), ((PRODUCT, BULK), False), ((TENSOR,), False), ((PRODUCT,), False)]
)
def test_both_are_needed(texts, both):
    blocks = [SimpleNamespace(counted=[parse_instruction(text)]) for text in texts]
    assert bool(has_both(SimpleNamespace(blocks=blocks))) is both
