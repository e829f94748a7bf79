"""The video pipeline as a schedule: no race, no needless wait, with enough buffers as fast as its slowest engine."""

import pytest

from kernels.serving.overlap.streams.hazards import races
from kernels.serving.overlap.streams.pipeline import Stages, one_after_the_other, pipelined
from kernels.serving.overlap.streams.timeline import simulate

STAGES = Stages(decode=2, preprocess=0.5, infer=1.25, answers=0.05)
SHAPES = [(depth, batch) for depth in (1, 2, 3) for batch in (1, 2)]


@pytest.mark.parametrize(("depth", "batch"), SHAPES)
def test_it_has_no_race_and_every_wait_is_needed(depth, batch):
    schedule = pipelined(12, STAGES, depth=depth, batch=batch)
    assert races(schedule) == []
    for operation in schedule:
        if operation.kind in ("wait", "sync"):
            assert races(schedule.without(operation)), f"nothing needs {operation}"


@pytest.mark.parametrize("batch", [1, 2])
def test_one_after_the_other_is_the_sum(batch):
    schedule = one_after_the_other(12, STAGES, batch=batch)
    assert races(schedule) == []
    of_batch = batch * (STAGES.decode + STAGES.preprocess) + STAGES.infer + STAGES.answers
    assert simulate(schedule).end == pytest.approx(12 / batch * of_batch)


@pytest.mark.parametrize("batch", [1, 2])
def test_two_buffers_are_enough_for_stages_of_steady_length(batch):
    frames = 60
    ends = [simulate(pipelined(frames, STAGES, depth=depth, batch=batch)).end / frames for depth in (1, 2, 3)]
    slowest = STAGES.slowest(batch)
    assert ends[0] >= ends[1] >= ends[2] >= slowest
    assert ends[1] == pytest.approx(slowest, rel=0.05)


def test_one_buffer_makes_stages_wait_for_each_other():
    """Decode cannot begin before preprocess has read the only frame."""
    end = simulate(pipelined(60, STAGES, depth=1)).end / 60
    assert end == pytest.approx(STAGES.decode + STAGES.preprocess, rel=0.05)


def test_the_slowest_engine_counts_what_the_sms_share():
    assert STAGES.slowest() == 2
    assert Stages(decode=1, preprocess=1, infer=2).slowest() == 3
    assert Stages(decode=1, preprocess=1, infer=2, preprocess_share=0.5, infer_share=0.25).slowest() == 1
    assert Stages(decode=1, preprocess=1, infer=4).slowest(batch=4) == 2


def test_actions_are_asked_for_by_stage_and_number():
    asked = []

    def actions(stage, i):
        asked.append((stage, i))
        return lambda: None

    schedule = pipelined(4, STAGES, batch=2, actions=actions)
    expected = {("decode", i) for i in range(4)} | {("preprocess", i) for i in range(4)}
    assert set(asked) == expected | {("infer", b) for b in range(2)} | {("answer", b) for b in range(2)}
    assert all(o.action for o in schedule if o.kind in ("decode", "kernel", "d2h", "host"))


@pytest.mark.parametrize("options", [{"frames": 0}, {"frames": 5, "batch": 2}, {"depth": 0}, {"batch": 0}])
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match="all at least 1, and frames a multiple of batch"):
        pipelined(**{"frames": 4, "stages": STAGES} | options)
