"""Loops that count towards a bound may take as long as they take; others count as endless."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplab import simulator
from warplab.dropin import numba_cuda as cuda
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import counted_loops


def taken(step: int, limit: str) -> str:
    """A step that is taken while the count is less than a limit, as Numba's range() counts."""
    choice = f"setp.lt.s32 p, %0, %1; selp.s32 s, {step}, 0, p; add.s32 %0, %0, s;"
    return f'asm("{{.reg .pred p; .reg .s32 s; {choice}}}" : "+r"(j) : "r"({limit}));'


WORK = "x = x * 1664525u + 1013904223u; x ^= x >> 7;"
END = {
    "up": "for (int j = 0; j < n; j++) { WORK }",
    "by_a_step": "for (int j = 0; j < n; j += step) { WORK }",
    "down": "for (int j = n; j > 0; j--) { WORK }",
    "unsigned_down": "for (unsigned j = n; j-- > 0;) { WORK }",
    "wide": "for (long long j = 0; j < n; j += step) { WORK }",
    "until_equal": "for (int j = 0; j != 2 * n; j += 2) { WORK }",
    "floats": "for (float f = 0; f < n; f += step) { WORK }",
    "doubles_down": "for (double f = 1; f > 0; f -= 1. / n) { WORK }",
    "nested": "for (int i = 0; i < n / 60; i++) for (int j = 0; j < 60; j++) { WORK }",
    "break": "int c = 0; while (true) { WORK if (++c == n) break; }",
    "two_ways_out": "for (int j = 0; j < n && x != 77u; j++) { WORK if (x == 3) break; }",
    "turns_back_early": "for (int j = 0; j < n; j++) { WORK if (x & 1) continue; x += o[j & 31]; o[j & 31] = x; }",
    "tries": "volatile unsigned* v = o; for (int j = 0; j < n && v[1] == 0; j++) { WORK }",
    "taken": f"int j = 0; while (j < n) {{ WORK {taken(1, 'n')} }}",
    "threads_differ": "for (int j = 0; j < n * (int)(threadIdx.x + 1); j += threadIdx.x + 1) { WORK }",
}
DO_NOT = {
    "step_0": "for (int j = 0; j < n; j += step - 1) { WORK }",
    "away": "for (unsigned j = n; j > 3; j += step) { WORK if (j > 0x80000000u) j = n; }",
    "passes_the_bound": "for (int j = 1; j != n; j += 2 * step) { WORK }",
    "below_0": "for (unsigned j = 0; j < (unsigned)(step - 2); j++) { WORK }",
    "float_too_large": "for (float f = 16777216.f; f < 16777216.f + n; f += step) { WORK }",
    "bits_of_a_float": "for (float f = 0; __float_as_uint(f) < 0x4c000000u + n; f += step) { WORK }",
    "pairs": 'unsigned j = 0; while (j < 0x7000) { WORK asm("add.f16x2 %0, %0, %1;" : "+r"(j) : "r"(1024 * step)); }',
    "not_taken": f"int j = 0; while (j < n) {{ WORK {taken(1, 'n - 9')} }}",
    "taken_short_of": f"int j = 0; while (j - 9 < n) {{ WORK {taken(1, 'n')} }}",
    "endless_around": "while (n) for (int j = 0; j < n / 60; j++) { WORK }",
    "rarely_counts": "for (int j = 0; j < n;) { WORK if (x == 1) j++; }",
    "comes_round": "int j = 0; while (j != n) { WORK j = (j + 1) % 100; }",
    "set_back": "for (int j = 0; j < n; j++) { WORK if (j == 99) j = 0; }",
    "one_thread_stays": "for (int j = 0; j < n; j += threadIdx.x) { WORK }",
    "counter_in_memory": "volatile unsigned* v = o; while (v[1] < n) { WORK v[1] = v[1] + 1; }",
    "counts_its_looks": "volatile unsigned* v = o; int c = 0; while (v[1] == 0) c++; x = c;",
    "waits_in_between": "volatile unsigned* v = o; while (v[1] == 0) for (int j = 0; j < n / 60; j++) { WORK }",
}


def launch(body, **options):
    code = f'extern "C" __global__ void k(unsigned* o, int n, int step) {{ unsigned x = threadIdx.x; {body}'
    source = CudaSource(code.replace("WORK", WORK) + " o[threadIdx.x] = x; }", "k")
    simulate(source, 1, 4, (np.zeros(32, np.uint32), np.int32(6000), np.int32(1)), races=False, **options)


@pytest.mark.parametrize("name", END)
def test_a_loop_that_counts_ends(monkeypatch, name):
    monkeypatch.setattr("warplab.simulator.run.scheduler._PATH", 10_000)
    launch(END[name])
    with pytest.raises(simulator.InstructionLimit, match="does not end"):  # an explicit limit wins
        launch(END[name], path_limit=10_000)


@pytest.mark.parametrize("name", DO_NOT)
def test_another_loop_does_not(monkeypatch, name):
    monkeypatch.setattr("warplab.simulator.run.scheduler._PATH", 10_000)
    with pytest.raises(simulator.InstructionLimit, match="does not end"):
        launch(DO_NOT[name])


@cuda.jit
def ranges(out, n):
    c = 0
    for i in range(n):
        for j in range(3):
            c += j ^ i
            if c == -7:
                break
    out[cuda.threadIdx.x] = c


def test_loops_over_ranges_in_numba_count(monkeypatch):
    monkeypatch.setattr("warplab.simulator.run.scheduler._PATH", 10_000)
    out = np.zeros(4, np.int32)
    simulate(ranges, 1, 4, (out, np.int32(6000)), races=False)
    assert (out == sum(j ^ i for i in range(6000) for j in range(3))).all()


@given(
    st.integers(0, 31),
    st.integers(-16, 15),
    st.integers(0, 31),
    st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]),
    st.booleans(),
)
def test_whether_a_count_leaves(now, step, bound, relation, signed):
    """In numbers of 5 bits. One that jumps over its bound and comes back round need not be found."""

    def number(value):
        return (value + 16) % 32 - 16 if signed else value % 32

    stays = {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__", "eq": "__eq__", "ne": "__ne__"}[relation]
    now, bound = number(now), number(bound)
    rounds = next((k for k in range(33) if not getattr(number(now + k * step), stays)(bound)), None)
    found = counted_loops._left(now, step, bound, relation, 5, signed)
    assert not found or rounds is not None
    assert found or not rounds or abs(step) > 1
