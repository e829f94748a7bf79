"""Each instruction with an operand of another kind or width, without one, with one more: it runs or it is refused.

`FORMS` has one or more forms of every opcode. What no emitter expects must not become Python that fails.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from warplab import simulator
from warplab.simulator.ptx.parser import parse_instruction
from warplab.simulator.ptx.program import Immediate
from warplab.simulator.translate import operations

FORMS = """
    add.s32 %r1, %r2, %r3
    add.f32 %f1, %f2, %f3
    add.rn.ftz.f32 %f1, %f2, %f3
    add.f64 %fd1, %fd2, %fd3
    add.s64 %rd5, %rd6, %rd7
    add.s16 %rs1, %rs2, %rs3
    add.f16 %rs1, %rs2, %rs3
    add.f16x2 %r1, %r2, %r3
    add.bf16x2 %r1, %r2, %r3
    sub.f16x2 %r1, %r2, %r3
    mul.f16x2 %r1, %r2, %r3
    fma.rn.f16x2 %r1, %r2, %r3, %r4
    fma.rn.f16 %rs1, %rs2, %rs3, %rs4
    fma.rn.bf16 %rs1, %rs2, %rs3, %rs4
    fma.rn.bf16x2 %r1, %r2, %r3, %r4
    fma.rn.relu.f16x2 %r1, %r2, %r3, %r4
    fma.rn.oob.relu.f16 %rs1, %rs2, %rs3, %rs4
    fma.rz.f32.bf16 %f1, %rs1, %rs2, %f2
    neg.f16x2 %r1, %r2
    abs.f16x2 %r1, %r2
    min.f16x2 %r1, %r2, %r3
    max.NaN.bf16x2 %r1, %r2, %r3
    ex2.approx.f16x2 %r1, %r2
    tanh.approx.f16 %rs1, %rs2
    setp.eq.f16x2 %p1|%p2, %r1, %r2
    set.eq.f16x2.f16x2 %r1, %r2, %r3
    add.cc.u32 %r1, %r2, %r3
    addc.u32 %r1, %r2, %r3
    addc.u16 %rs1, %rs2, %rs3
    addc.cc.u32 %r1, %r2, %r3
    sub.cc.u32 %r1, %r2, %r3
    subc.u32 %r1, %r2, %r3
    mad.lo.cc.u32 %r1, %r2, %r3, %r4
    madc.hi.u32 %r1, %r2, %r3, %r4
    sub.s32 %r1, %r2, %r3
    mul.lo.s32 %r1, %r2, %r3
    mul.hi.u32 %r1, %r2, %r3
    mul.wide.u32 %rd5, %r2, %r3
    mul24.lo.s32 %r1, %r2, %r3
    mad.lo.s32 %r1, %r2, %r3, %r4
    mad.wide.s32 %rd5, %r2, %r3, %rd6
    mad24.lo.s32 %r1, %r2, %r3, %r4
    fma.rn.f32 %f1, %f2, %f3, %f4
    fma.rn.f64 %fd1, %fd2, %fd3, %fd4
    div.rn.f32 %f1, %f2, %f3
    div.approx.f32 %f1, %f2, %f3
    div.s32 %r1, %r2, %r3
    rem.u32 %r1, %r2, %r3
    abs.s32 %r1, %r2
    neg.f32 %f1, %f2
    min.f32 %f1, %f2, %f3
    max.NaN.f32 %f1, %f2, %f3
    sqrt.rn.f32 %f1, %f2
    rsqrt.approx.f32 %f1, %f2
    rcp.rn.f32 %f1, %f2
    sin.approx.f32 %f1, %f2
    ex2.approx.f32 %f1, %f2
    lg2.approx.f32 %f1, %f2
    tanh.approx.f32 %f1, %f2
    copysign.f32 %f1, %f2, %f3
    testp.notanumber.f32 %p1, %f1
    testp.finite.f64 %p1, %fd1
    sad.u32 %r1, %r2, %r3, %r4
    dp4a.u32.u32 %r1, %r2, %r3, %r4
    dp2a.lo.s32.u32 %r1, %r2, %r3, %r4
    popc.b32 %r1, %r2
    popc.b64 %r1, %rd5
    clz.b32 %r1, %r2
    brev.b32 %r1, %r2
    bfind.u32 %r1, %r2
    bfind.shiftamt.s32 %r1, %r2
    fns.b32 %r1, %r2, %r3, %r4
    bfe.u32 %r1, %r2, %r3, %r4
    bfi.b32 %r1, %r2, %r3, %r4, %r5
    szext.wrap.u32 %r1, %r2, %r3
    bmsk.clamp.b32 %r1, %r2, %r3
    and.b32 %r1, %r2, %r3
    and.pred %p1, %p2, %p3
    or.b64 %rd5, %rd6, %rd7
    xor.b16 %rs1, %rs2, %rs3
    not.b32 %r1, %r2
    not.pred %p1, %p2
    cnot.b32 %r1, %r2
    lop3.b32 %r1, %r2, %r3, %r4, 150
    lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 150, %p2
    shl.b32 %r1, %r2, %r3
    shr.s32 %r1, %r2, 3
    shf.l.wrap.b32 %r1, %r2, %r3, %r4
    prmt.b32 %r1, %r2, %r3, %r4
    prmt.b32.f4e %r1, %r2, %r3, %r4
    set.eq.u32.f32 %r1, %f1, %f2
    set.lt.and.f32.s32 %f1, %r1, %r2, %p1
    setp.ne.u32 %p1, %r1, %r2
    setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3
    selp.b32 %r1, %r2, %r3, %p1
    slct.f32.s32 %f1, %f2, %f3, %r1
    mov.u32 %r1, %r2
    mov.u32 %r1, %tid.x
    mov.u64 %rd5, tile
    mov.b64 %rd5, {%r1, %r2}
    mov.b64 {%r1, %r2}, %rd5
    mov.b32 {%rs1, %rs2}, %r1
    mov.pred %p1, %p2
    mov.f32 %f1, 0f3F800000
    mov.u64 %rd5, %clock64
    cvt.rn.f32.s32 %f1, %r1
    cvt.rzi.s32.f32 %r1, %f1
    cvt.u64.u32 %rd5, %r1
    cvt.rn.f16.f32 %rs1, %f1
    cvt.f32.f16 %f1, %rs1
    cvt.rn.f16x2.f32 %r1, %f1, %f2
    cvt.rn.bf16x2.f32 %r1, %f1, %f2
    cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2
    cvt.rn.f16x2.e4m3x2 %r1, %rs1
    cvt.rna.tf32.f32 %r1, %f1
    cvt.rn.satfinite.e2m3x2.f32 %rs1, %f1, %f2
    cvt.rn.f16x2.e3m2x2 %r1, %rs1
    cvt.rp.satfinite.ue8m0x2.bf16x2 %rs1, %r1
    cvt.rn.bf16x2.ue8m0x2 %r1, %rs1
    cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4
    cvt.sat.u8.s32 %r1, %r2
    cvta.to.global.u64 %rd5, %rd1
    cvta.global.u64 %rd5, %rd1
    cvta.shared.u64 %rd5, %rd4
    isspacep.global %p1, %rd1
    isspacep.shared::cta %p1, %rd1
    ld.global.u32 %r1, [%rd1]
    ld.global.nc.f32 %f1, [%rd1+4]
    ld.global.v2.u32 {%r1, %r2}, [%rd1]
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]
    ld.volatile.global.u32 %r1, [%rd1]
    ld.relaxed.gpu.global.u32 %r1, [%rd1]
    ld.acquire.sys.u32 %r1, [%rd1]
    ld.shared.f32 %f1, [tile]
    ld.shared.u32 %r1, [%r20]
    ld.local.u32 %r1, [stack]
    ld.const.u32 %r1, [table]
    ld.param.u32 %r1, [f_param_2]
    ld.param.u64 %rd5, [f_param_0]
    ldu.global.u32 %r1, [%rd1]
    st.global.u32 [%rd1], %r1
    st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4}
    st.shared.u8 [tile], %r1
    st.bulk.weak.shared::cta [tile], 64, 0
    ld.global.v8.u32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1]
    st.global.v8.f32 [%rd1], {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}
    st.local.u64 [stack], %rd5
    st.release.gpu.global.u32 [%rd1], %r1
    prefetch.global.L2 [%rd1]
    prefetchu.L1 [%rd1]
    discard.global.L2 [%rd1], 128
    applypriority.global.L2::evict_normal [%rd1], 128
    createpolicy.fractional.L2::evict_first.b64 %rd5, 0f3F800000
    atom.global.add.u32 %r1, [%rd1], %r2
    atom.global.add.f32 %f1, [%rd1], %f2
    atom.global.cas.b32 %r1, [%rd1], %r2, %r3
    atom.global.cas.b64 %rd5, [%rd1], %rd6, %rd7
    atom.global.exch.b32 %r1, [%rd1], %r2
    atom.shared.max.s32 %r1, [tile], %r2
    atom.global.inc.u32 %r1, [%rd1], %r2
    atom.global.add.noftz.f16x2 %r1, [%rd1], %r2
    red.global.add.u32 [%rd1], %r2
    red.shared.or.b32 [tile], %r2
    bar.sync 0
    bar.sync 0, 64
    bar.sync %r21
    bar.arrive 1, 64
    bar.warp.sync -1
    bar.red.popc.u32 %r1, 0, 64, %p1
    bar.red.and.pred %p1, 0, %p2
    bar.red.or.pred %p1, 0, 64, !%p2
    barrier.sync 0
    barrier.sync.aligned 0, 64
    barrier.cluster.arrive
    barrier.cluster.wait
    membar.gl
    fence.acq_rel.gpu
    fence.sc.cta
    fence.proxy.async
    shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1
    shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1
    shfl.sync.down.b32 %r1, %r2, %r3, %r22, %r23
    vote.sync.any.pred %p1, %p2, -1
    vote.sync.ballot.b32 %r1, %p1, -1
    vote.sync.uni.pred %p1, !%p2, %r23
    match.any.sync.b32 %r1, %r2, -1
    match.all.sync.b32 %r1|%p1, %r2, -1
    match.any.sync.b64 %r1, %rd5, -1
    redux.sync.add.s32 %r1, %r2, -1
    redux.sync.min.abs.NaN.f32 %f1, %f2, -1
    movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2
    activemask.b32 %r1
    elect.sync %r1|%p1, -1
    griddepcontrol.wait
    nanosleep.u32 100
    nanosleep.u32 %r21
    cp.async.ca.shared.global [%r20], [%rd1], 4
    cp.async.cg.shared.global [%r20], [%rd1], 16
    cp.async.ca.shared.global [%r20], [%rd1], 4, %r21
    cp.async.commit_group
    cp.async.wait_group 0
    cp.async.wait_all
    cp.async.mbarrier.arrive.shared.b64 [flag]
    mbarrier.init.shared.b64 [flag], 64
    mbarrier.arrive.shared.b64 %rd5, [flag]
    mbarrier.arrive.noComplete.shared.b64 %rd5, [flag], 1
    mbarrier.arrive.expect_tx.shared.b64 %rd5, [flag], 16
    mbarrier.expect_tx.shared.b64 [flag], 16
    mbarrier.complete_tx.shared.b64 [flag], 16
    mbarrier.test_wait.shared.b64 %p1, [flag], %rd5
    mbarrier.try_wait.parity.shared.b64 %p1, [flag], 0
    mbarrier.try_wait.shared.b64 %p1, [flag], %rd5, 100
    mbarrier.pending_count.b64 %r1, %rd5
    mbarrier.inval.shared.b64 [flag]
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r20]
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r20]
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r20]
    stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r20], {%r1, %r2}
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8}
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8}
    mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r7,%r8}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r7,%r8}
    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r5,%r6,%r7,%r8}
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd5,%fd6}
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [tile], %r24
    wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [tile], 16
    wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd5,%fd6}
    cos.approx.f32 %f1, %f2
    suq.width.b32 %r1, [%rd5]
    vabsdiff2.u32.u32.u32.add %r1, %r2, %r3, %r4
    vabsdiff4.u32.u32.u32.add %r1, %r2, %r3, %r4
    wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [tile], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, %r24
    mapa.u64 %rd5, %rd4, 0
    mapa.shared::cluster.u32 %r1, %r20, 0
    getctarank.u64 %r1, %rd4
    getctarank.shared::cluster.u32 %r1, %r20
    st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], %r1, [flag]
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%rd1], 16, [flag]
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r20], 16
    cp.async.bulk.commit_group
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r20], [flag]
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q1
    cp.async.bulk.wait_group 0
    cp.async.bulk.wait_group.read 0
    wgmma.fence.sync.aligned
    wgmma.commit_group.sync.aligned
    wgmma.wait_group.sync.aligned 0
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r20], 32
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1,%r2}, [%r3]
    tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r3], 1
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r1}
    tcgen05.wait::st.sync.aligned
    tcgen05.fence::before_thread_sync
    tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd5, %rd6, %r2, %p1
    tcgen05.mma.cta_group::1.kind::tf32 [%r1], [%r2], %rd6, %r3, {%r1,%r2,%r3,%r4}, %p1, 2
    tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd5, %rd6, %r2, [%r3], [%r4], %p1
    tcgen05.cp.cta_group::1.128x128b [%r1], %rd5
    tcgen05.shift.cta_group::1.down [%r1]
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r20]
    setmaxnreg.inc.sync.aligned.u32 40
    tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd5, {%r1}]
    tld4.r.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd5, {%f1,%f2}]
    suld.b.1d.b32.trap %r1, [%rd5, {%r1}]
    sust.b.1d.b32.trap [%rd5, {%r1}], %r1
    txq.width.b32 %r1, [%rd5]
    bra DONE
    bra.uni DONE
    trap
    exit
    ret
    brkpt
    pmevent 1
"""
# Registers of all kinds, numbers beyond any width, addresses, vectors, names, and a constant expression.
KINDS = """
    %r1 %rs1 %f1 %fd1 %rd1 %p1 !%p1 %q1 0 1 -1 16 4294967296 18446744073709551615 -9223372036854775808 0f3F800000
    0d0000000000000000 1.5 ~0 [%rd1] [%r1] [%rs1] [%f1] [%p1] [0] [tile] [nowhere] [%rd1+99999999999999999999] {%r1,%r2}
    {%r1,%r2,%r3,%r4} {%f1,%p1} {%rd1,%rd2} {_,%r1} {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8} _ tile f_param_0 f_param_2
    nowhere DONE f other %tid.x %tid %laneid %clock64 %pm0 %envreg0 [%rd1,{%r1}] [%rd1,{%r1,%r2}] [tile,{%r1}]
"""
SUFFIXES = """
    u8 s16 f16 bf16 f16x2 u32 s32 f32 u64 f64 b128 pred v2 v4 v8 sync x wide cc sat global shared local param const popc
"""
HEAD = """.version 8.5
.target sm_90a
.address_size 64
.const .align 4 .u32 table[4] = {1,2,3,4};
.func other() { ret; }
.visible .entry f(.param .u64 f_param_0, .param .u64 f_param_1, .param .u32 f_param_2)
{
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 %fd<9>;
.reg .b128 %q<3>;
.shared .align 128 .b8 tile[2048];
.shared .align 8 .b64 flag;
.local .align 8 .b8 stack[64];
ld.param.u64 %rd1, [f_param_0];
ld.param.u64 %rd2, [f_param_1];
mov.u32 %r20, tile;
mov.u64 %rd4, tile;
mov.u32 %r25, %tid.x; mul.wide.u32 %rd3, %r25, 8; add.s64 %rd2, %rd2, %rd3;
mul.lo.u32 %r26, %r25, 32; add.u32 %r26, %r26, %r20;
mov.u64 %rd3, 0; st.shared.v2.u64 [%r26], {%rd3, %rd3}; st.shared.v2.u64 [%r26+16], {%rd3, %rd3};
st.local.u64 [stack], %rd3;
setp.eq.u32 %p8, %r25, 0; @%p8 mbarrier.init.shared.b64 [flag], 64; bar.sync 0;
mov.u32 %r21, 0; mov.u32 %r22, 31; mov.u32 %r23, -1; mov.u32 %r24, 16;
"""
INITIAL = "\n".join(
    [
        *(f"mov.u32 %r{k}, {k}; mov.b16 %rs{k}, {k}; mov.f32 %f{k}, 0f3F800000;" for k in range(1, 9)),
        *(f"mov.f64 %fd{k}, 0d3F80000000000000; setp.ne.u32 %p{k}, %r1, {k};" for k in range(1, 9)),
        *(f"mov.u64 %rd{k}, {k};" for k in range(5, 9)),
    ]
)
LAST = """
DONE: st.global.f32 [%rd2], %f1; st.global.u32 [%rd2], %r1; st.global.u64 [%rd2], %rd5; ret;
}
"""


def changed(form: str, draw: random.Random) -> str:
    """Return an instruction with one operand or one modifier replaced, added or left out."""
    head, _, tail = form.partition(" ")
    opcode, *modifiers = head.split(".")
    between = "|" if "|" in tail else ", "
    operands = simulator.ptx.parser._split(tail)
    change = draw.randrange(5)
    place = draw.randrange(max(1, len(operands)))
    if change == 0 or (change < 3 and not operands):
        operands.append(draw.choice(KINDS.split()))
    elif change < 3:
        operands[place : place + 1] = [draw.choice(KINDS.split())] * (change == 1 or draw.random() < 0.8)
    elif modifiers:
        place = draw.randrange(len(modifiers))
        modifiers[place : place + 1] = [draw.choice(SUFFIXES.split())] * (change == 3)
    guard = draw.choice(["", "", "@%p8 "])
    return (
        f"{guard}{'.'.join([opcode, *modifiers])} "
        + between.join(operands[:2])
        + "".join(f", {operand}" for operand in operands[2:])
    )


def run(instruction: str) -> None:
    device = simulator.Device(1 << 20)
    device.echo = False
    entry = simulator.load("\n".join([HEAD, INITIAL, instruction + ";", LAST])).entries["f"]
    params = []
    for size in (8, 8, 4):
        place = device.memory.allocate(4096)
        device.memory.view(place, 4096)[:] = np.zeros(4096, np.uint8)
        device.memory.mark_initialized(place, 4096)
        params.append(place.to_bytes(8, "little")[:size])
    device.launch(entry, (1,), (64,), params, options=simulator.Options(path_limit=2000))


def test_every_opcode_has_a_form():
    inside = {"argument", "assertfail", "enter", "free", "gridhandle", "inlined", "invalid", "malloc", "vprintf"}
    forms = [parse_instruction(form) for form in FORMS.strip().splitlines()]
    assert {*operations.TABLE} - inside - {"tensormap"} <= {form.opcode for form in forms}
    assert {*operations.OPERANDS} <= {*operations.TABLE}


@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_an_operand_that_does_not_fit_is_an_error_of_the_kernel_never_of_the_simulator(count):
    seed = 34_100 + count
    draw = random.Random(seed)
    forms = FORMS.strip().splitlines()
    ran = 0
    for number in range(count):
        form = draw.choice(forms).strip()
        instruction = form if draw.random() < 0.1 else changed(form, draw)
        try:
            run(instruction)
            ran += 1
        except simulator.SimulatorError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}, change {number}: `{instruction}`") from error
    assert 0.1 * count < ran < 0.9 * count


@pytest.mark.parametrize(
    "instruction",
    [
        "bar.red.and.pred 1, 1, %p1",
        "bar.red.and.pred !%p1, 0, %p2",
        "bar.red.and.pred %p1, 1, 4294967296",
        "bar.red.and.pred %p1",
        "bar.red.approx.u32 %r1, 1, 64, %p1",
        "bar.sync 16",
        "fma.rn.f16x2 %r1, %r2",
        "fma.rn.f16x2 %r1, %r2, %r3, %r4, %r5",
        "testp.nan.f32 %p1, %f1",
        "ld.param.u32 {%r1,%r2}, [f_param_2]",
        "add.f32 %f1, %f2, !%f3",
        "madc.hi.f32 %r1, %r2, %r3, %r4",
        "add.s32 %q1, %r2, %r3",
        "st.global.v4.f32 [%rd1], {%f1,%f2}",
        "atom.global.add.u32 {%r1,%r2}, [%rd1], %r2",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 %r1, [%r20]",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 %r1, [tile], 16",
        "cvt.pack.sat.u64.s32.b32 %r1, %r2, %r3, %r4",
        "cp.async.bulk.global.f16.bulk_group [%rd1], [%r20], 16",
    ],
)
def test_operands_that_the_fuzz_found_are_refused_by_the_instruction(instruction):
    with pytest.raises(
        simulator.UnsupportedInstruction, match=r"does not know the PTX instruction `" + instruction[:8]
    ):
        run(instruction)


def test_a_barrier_number_in_a_register_is_one_that_a_block_has():
    with pytest.raises(simulator.DivergentBarrier, match="a barrier of number 16: a block has 0 to 15"):
        run("bar.sync %r24")


@pytest.mark.parametrize(
    ("text", "value"),
    [("~0", -1), ("~0U", -1), ("-(1)", -1), ("1<<4", 16), ("1+2*3", 7), ("~(1<<3)", -9), ("3&1^7", 6), ("017", 15)],
)
def test_constant_expressions_are_numbers(text, value):
    (operand,) = parse_instruction(f"nanosleep.u32 {text}").operands
    assert operand == Immediate(value)


@pytest.mark.parametrize("text", ["~", "1<2", "1**2", "5-", "1 2", "~" * 101 + "0"])
def test_what_is_no_constant_expression_is_refused(text):
    with pytest.raises(simulator.UnsupportedInstruction):
        parse_instruction(f"nanosleep.u32 {text}")
