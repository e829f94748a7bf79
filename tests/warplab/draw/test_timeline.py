"""Steps of traced warps, in the order in which the simulator ran them, and the timeline drawn from them."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

import warplab
from tests.support.synthetic_profiles import vector_multiply
from warplab import draw_timeline, simulator
from warplab.draw.timeline import COLOURS, IDLE, OTHER, WAITING
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """\
#ifndef SYNC
#define SYNC
#endif
KERNEL talk(float* a, float* b, float* x, float* y) {
    int t = threadIdx.x;
    if (t < 4) {
        a[t] = 1.0f;
        SYNC;
        b[t] = x[4] + 1.0f;
    } else {
        x[t] = 2.0f;
        SYNC;
        y[t] = a[0] + 2.0f;
    }
    SYNC;
}
KERNEL trips(float* a) {
    int t = threadIdx.x;
    float x = a[t];
#pragma unroll 1
    for (int k = 0; k < t % 4; k++)
        x = x * x + 1.0f;
    a[t] = x;
}
KERNEL half(float* a, int n) {
    int t = threadIdx.x;
    float x = a[t];
    if (t < n)
        a[t + 32] = x;
    a[t] = x + 1.0f;
}
KERNEL uneven(float* a) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = a[t];
    if (t >= 32)
#pragma unroll 1
        for (int k = 0; k < 4; k++)
            s[t] = s[t] / (s[t] + 3.0f);
    __syncthreads();
    a[t] = s[63 - t];
}
KERNEL two_barriers(float* a) {
    int t = threadIdx.x;
    if (t < 32) {
        __syncthreads();
        a[t] = a[t + 32];
    } else {
        a[t] = 3.0f;
        __syncthreads();
    }
}
KERNEL some_return(float* a) {
    int t = threadIdx.x;
    if (t >= 8) return;
#pragma unroll 1
    for (int k = 0; k < 4; k++)
        a[t] = a[t] / (a[t] + 3.0f);
}
KERNEL lock(int* lock, int* count) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    *(volatile int*)count = *(volatile int*)count + 1;
    __threadfence();
    atomicExch(lock, 0);
}
KERNEL four(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
""".replace("KERNEL", 'extern "C" __global__ void')
WITH_SYNC = ("-DSYNC=__syncwarp()",)
NAMES = {"a[t] = 1": "A", "b[t] =": "B", "x[t] = 2": "X", "y[t] =": "Y"}
FULL, FIRST_FOUR = 0xFFFFFFFF, 0xF


def line_of(text: str) -> int:
    return 1 + next(k for k, line in enumerate(SOURCE.splitlines()) if text in line)


LINES = {line_of(text): name for text, name in NAMES.items()}


def run(name, block, *args, grid=1, options=(), **how):
    return simulate(CudaSource(SOURCE, name, options), grid, block, args, **how)


def talk(options=(), **how):
    return run("talk", 32, *(np.zeros(32, np.float32) for _ in range(4)), options=options, races=False, **how)


def named(profile) -> list[tuple[str, int, int]]:
    """Name, active and waiting lanes of the talk's steps."""
    return [(LINES[s.line], s.active, s.waiting) for s in profile.steps.of() if s.line in LINES]


# -- the steps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["pascal", "volta"])
def test_one_side_of_a_branch_then_the_other(policy):
    profile = talk(scheduling=policy)
    rest = FULL ^ FIRST_FOUR
    assert named(profile) == [("A", FIRST_FOUR, 0), ("B", FIRST_FOUR, 0), ("X", rest, 0), ("Y", rest, 0)]
    assert profile.steps.scheduling == policy
    assert profile.steps.complete


def test_syncwarp_interleaves_the_sides_on_volta():
    profile = talk(WITH_SYNC)
    rest = FULL ^ FIRST_FOUR
    # A, then the four lanes wait while the others do X; once all have met, B and Y.
    assert named(profile) == [("A", FIRST_FOUR, 0), ("X", rest, FIRST_FOUR), ("B", FIRST_FOUR, 0), ("Y", rest, 0)]


def test_an_error_keeps_what_ran_until_then():
    with pytest.raises(simulator.DivergentWarp, match=r"never come: 4 to 31\n(.*\n)*.*A deadlock") as caught:
        talk(WITH_SYNC, scheduling="pascal")
    assert named(caught.value.profile) == [("A", FIRST_FOUR, 0)]
    assert caught.value.profile.kernel == "talk"
    assert caught.value.profile.counts.warp_instructions > 0
    with pytest.raises(simulator.DivergentWarp) as caught:
        talk(WITH_SYNC, scheduling="pascal", counters=False)
    assert caught.value.profile is None


def test_lanes_leave_a_loop_one_by_one():
    body = line_of("x = x * x")
    steps = [s for s in run("trips", 32, np.zeros(32, np.float32)).steps.of() if s.line == body]
    lanes = np.arange(32) % 4
    assert [s.active for s in steps] == [sum(1 << k for k in range(32) if lanes[k] > turn) for turn in range(3)]
    assert all(s.issued == s.active for s in steps)


def test_predicated_instructions_are_issued_to_all():
    profile = run("half", 32, np.zeros(64, np.float32), np.int32(5))
    (store,) = [s for s in profile.steps.of() if s.active == 0b11111]
    assert (store.line, store.issued) == (line_of("a[t + 32] = x;"), FULL)
    assert profile.counts.branches == 0


@pytest.mark.parametrize("kernel", ["trips", "some_return", "uneven"])
def test_the_steps_add_up_to_the_counters(kernel):
    profile = run(kernel, 64, np.zeros(64, np.float32))
    steps = [s for warp in (0, 1) for s in profile.steps.of(0, warp)]
    assert sum(s.instructions for s in steps) == profile.counts.warp_instructions
    assert sum(s.instructions * s.issued.bit_count() for s in steps) == profile.counts.thread_instructions
    for line in {s.line for s in steps}:
        counts = profile.lines["kernel.cu", line]
        assert sum(s.instructions for s in steps if s.line == line) == counts.warp_instructions


def test_lanes_that_have_ended_and_lanes_that_never_were():
    steps = run("some_return", 32, np.zeros(32, np.float32)).steps.of()
    assert {(s.active, s.ended) for s in steps} == {(FULL, 0), (0xFF, FULL ^ 0xFF)}
    profile = run("four", 4, np.zeros(16, np.int32), grid=4)
    assert {s.ended for s in profile.steps.of(3)} == {FULL ^ 0xF}
    assert profile.steps.traced == [(block, 0) for block in range(4)]


def test_a_warp_waits_at_a_barrier_for_another():
    rows = run("two_barriers", 64, np.zeros(64, np.float32)).steps.together(0, [0, 1])
    store = [row for row in rows if row[1].active and row[1].line == line_of("a[t] = 3.0f")]
    assert [(first.active, first.waiting, second.active) for first, second in store] == [(0, FULL, FULL)]
    after = [row for row in rows if row[0].line == line_of("a[t] = a[t + 32]")]
    assert {(first.active, first.waiting) for first, _ in after} == {(FULL, 0)}
    assert all(first.time == second.time for first, second in rows)
    with pytest.raises(ValueError, match=r"warp 2 of block 0 was not traced; traced \(block, warp\): \(0, 0\), \(0, 1"):
        run("uneven", 64, np.zeros(64, np.float32)).steps.of(0, 2)


def test_a_spin_lock_gives_each_lane_its_turn():
    profile = run("lock", 4, *(np.zeros(1, np.int32) for _ in range(2)))
    critical = [s.active for s in profile.steps.of() if s.line == line_of("*(volatile int*)count")]
    assert sorted(critical) == [1, 2, 4, 8]
    with pytest.raises(simulator.InstructionLimit) as caught:
        run("lock", 4, *(np.zeros(1, np.int32) for _ in range(2)), scheduling="pascal", path_limit=10_000)
    spinning = caught.value.profile.steps.of()
    assert {s.active for s in spinning} == {0xF, 0xE}
    assert spinning[-1].active == 0xE


def test_the_trace_is_bounded():
    profile = run("trips", 32, np.zeros(32, np.float32), trace_events=3)
    assert not profile.steps.complete
    whole = run("trips", 32, np.zeros(32, np.float32)).steps
    assert whole.complete
    assert profile.steps.of() == whole.of()[: len(profile.steps.of())] != whole.of()
    assert run("trips", 32, np.zeros(32, np.float32), trace_warps=0).steps is None
    assert run("trips", 32, np.zeros(32, np.float32), counters=False).steps is None
    many = run("four", 64, np.zeros(64 * 8, np.int32), grid=8)
    assert many.steps.traced == [(0, 0), (0, 1), (1, 0), (1, 1)]


# -- the picture -------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_figure_left_open():
    yield
    assert plt.get_fignums() == []


def pale(colour):
    return tuple(0.28 * part + 0.72 for part in to_rgb(colour))


def cells(figure, colour) -> set[tuple[int, int]]:
    """(step, lane) of what is filled with a colour."""
    found = set()
    for collection in figure.axes[0].collections:
        face = collection.get_facecolor()
        if len(face) and np.allclose(face[0][:3], to_rgb(colour), atol=1e-3):
            for path in collection.get_paths():
                (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found |= {(round((x0 + x1) / 2), lane) for lane in range(round(y0 + 0.5), round(y1 + 0.5))}
    return found


def column(step: int, lanes) -> set[tuple[int, int]]:
    return {(step, lane) for lane in lanes}


def headings(figure) -> list[str]:
    return [text.get_text() for text in sorted(figure.axes[0].texts, key=lambda text: text.xy[0])]


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_talks_example_under_both_policies():
    figure = draw_timeline(talk(scheduling="pascal"), names=NAMES, others=False)
    assert headings(figure) == ["A", "B", "X", "Y"]
    assert cells(figure, COLOURS[0]) == column(0, range(4))
    assert cells(figure, COLOURS[3]) == column(3, range(4, 32))
    assert cells(figure, IDLE) == {(s, k) for s in range(4) for k in range(32) if (k < 4) != (s < 2)}
    assert "scheduling pascal" in figure.texts[0].get_text()
    assert legend(figure)[:2] == ["A:  a[t] = 1.0f;", "B:  b[t] = x[4] + 1.0f;"]

    figure = draw_timeline(talk(WITH_SYNC), names=NAMES, others=False)
    assert headings(figure) == ["A", "X", "B", "Y"]
    assert cells(figure, WAITING) == column(1, range(4))
    assert "waits for other lanes" in legend(figure)
    both = draw_timeline(talk(WITH_SYNC), names={**NAMES, "SYNC;": "sync"}, others=False)
    assert headings(both) == ["A", "sync", "X", "sync", "B", "Y", "sync"]


def test_the_legend_stands_close_below_the_picture():
    for names, others, rows in ((NAMES, False, 3), (None, True, 5)):
        figure = draw_timeline(talk(scheduling="pascal"), names=names, others=others)
        figure.draw_without_rendering()
        assert -(-len(legend(figure)) // 2) == rows
        below = figure.axes[0].xaxis.label.get_window_extent().y0 - figure.legends[0].get_window_extent().y1
        assert 0.05 < below / figure.dpi < 0.2  # inches


def test_the_error_of_a_deadlock_is_drawn():
    with pytest.raises(simulator.DivergentWarp) as caught:
        talk(WITH_SYNC, scheduling="pascal")
    figure = draw_timeline(caught.value, names=NAMES)
    assert headings(figure) == ["A"]
    assert cells(figure, OTHER)
    with pytest.raises(simulator.DivergentWarp) as caught:
        talk(WITH_SYNC, scheduling="pascal", counters=False)
    with pytest.raises(ValueError, match="the error holds no trace"):
        draw_timeline(caught.value)


def test_without_names_every_line_has_its_number_and_colour():
    profile = run("trips", 32, np.zeros(32, np.float32))
    figure = draw_timeline(profile)
    first = line_of("KERNEL trips".replace("KERNEL", 'extern "C" __global__ void'))
    body, loop = line_of("x = x * x"), line_of("for (int k = 0; k < t % 4")
    shown = [int(text) for text in headings(figure)]
    assert shown[:3] == [first, first + 1, first + 2]
    assert [n for n in shown if n in (body, loop)] == [loop, body, loop, body, loop, body, loop]
    steps = [k for k, n in enumerate(shown) if n == body]
    at = sorted(set(shown)).index(body)
    for turn, step in enumerate(steps):
        lanes = [k for k in range(32) if k % 4 > turn]
        assert column(step, lanes) <= cells(figure, COLOURS[at])
    assert f"{body}:  x = x * x + 1.0f;" in legend(figure)
    assert not cells(figure, WAITING)


def test_by_instruction_each_column_is_one():
    profile = run("trips", 32, np.zeros(32, np.float32))
    total = profile.counts.warp_instructions
    figure = draw_timeline(profile, by="instruction", most=1000)
    every = {step for colour in COLOURS for step, _ in cells(figure, colour)}
    assert every == set(range(total))
    assert figure.axes[0].get_xlim() == (-0.5, total - 0.5)
    text = figure.texts[1].get_text()
    assert text.startswith(f"{total} steps: {total} machine instructions, {100 * profile.counts.warp_efficiency:.1f} %")
    lines = len({s.line for s in profile.steps.of()})
    assert lines < len(headings(figure)) < total


def test_predicated_lanes_are_pale():
    profile = run("half", 32, np.zeros(64, np.float32), np.int32(5))
    figure = draw_timeline(profile, names={"a[t + 32] = x": "store"})
    (step,) = {step for step, _ in cells(figure, COLOURS[0])}
    assert cells(figure, COLOURS[0]) == column(step, range(5))
    assert cells(figure, pale(COLOURS[0])) == column(step, range(5, 32))
    assert "issued, but predicated off" in legend(figure)


def test_several_warps_stand_one_below_the_other():
    profile = run("uneven", 64, np.zeros(64, np.float32))
    figure = draw_timeline(profile, warp=(0, 1), names={"s[t] / (": "loop"}, most=400)
    alone = cells(figure, COLOURS[0])
    assert {lane for _, lane in alone} == set(range(32, 64))
    assert figure.axes[0].get_ylim() == (63.5, -0.5)
    assert "warps 0, 1" in figure.texts[0].get_text()


def test_a_part_of_a_long_run():
    profile = run("lock", 8, *(np.zeros(1, np.int32) for _ in range(2)))
    whole = draw_timeline(profile, most=1000)
    total = len(headings(whole))
    figure = draw_timeline(profile, start=10, most=20)
    assert headings(figure) == headings(whole)[10:30]
    assert f"steps 10 to 29 of {total}" in figure.texts[1].get_text()
    assert len(headings(draw_timeline(profile))) == min(total, 60)
    cut = draw_timeline(run("lock", 8, *(np.zeros(1, np.int32) for _ in range(2)), trace_events=5))
    assert "trace cut" in cut.texts[1].get_text()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"by": "warp"}, "by='warp'; choose 'line' or 'instruction'"),
        ({"names": {"nowhere": "N"}}, r"the source has no line 'nowhere' to call 'N'; the warp ran the lines 4: "),
        ({"names": {10_000: "N"}}, "no line 10000 to call 'N'"),
        ({"start": 1000}, "start=1000, most=60: the warp has 14 steps"),
        ({"start": -1}, "start=-1"),
        ({"most": 0}, "most=0"),
        ({"warp": 1}, "warp 1 of block 0 was not traced"),
    ],
)
def test_what_cannot_be_drawn_says_why(how, message):
    profile = run("talk", 32, *(np.zeros(32, np.float32) for _ in range(4)), options=WITH_SYNC)
    with pytest.raises(ValueError, match=message):
        draw_timeline(profile, **how)


def test_launches_without_steps_are_refused():
    for profile in (run("trips", 32, np.zeros(32, np.float32), trace_warps=0), vector_multiply()):
        with pytest.raises(ValueError, match="holds no steps, as counters or trace were off"):
            draw_timeline(profile)


def test_names_of_lines_that_the_warp_did_not_reach_are_no_mistake():
    figure = draw_timeline(run("half", 32, np.zeros(64, np.float32), np.int32(0)), names={"a[t + 32] = x": "store"})
    assert headings(figure) == []
    assert legend(figure)[0] == "other lines"


def test_it_is_exported_and_small():
    assert warplab.draw_timeline is draw_timeline
    for figure in (draw_timeline(talk(WITH_SYNC)), draw_timeline(run("lock", 8, *np.zeros((2, 1), np.int32)))):
        width, height = figure.get_size_inches()
        assert 6 <= width <= 9
        assert height < 6
