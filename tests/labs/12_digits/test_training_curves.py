"""A run's curves: cut where a checkpoint is, torn lines passed over, and read by TensorBoard as they are."""

from __future__ import annotations

import json
import math
import sys
from types import ModuleType

import pytest

from digits.files import DigitsError, read_lines
from digits.training import events
from digits.training.curves import Curves
from tests.support.lazily import module

# TensorBoard asks for this module, and does without TensorFlow, which takes seconds to import, if it is there.
sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))
tensorboard = module("tensorboard.backend.event_processing.event_accumulator")


def line(step, part="train", **figures):
    return {"step": step, "epoch": step / 10, "part": part, "loss": 1 / (step + 3), **figures, "rate": 0.1}


LINES = [
    line(0, "validation", accuracy=0.1),
    line(5),
    line(10),
    line(10, "validation", accuracy=0.5),
    line(15),
    line(20),
    line(20, "validation", accuracy=0.75),
]


def written(run, lines=LINES, **last):
    curves = Curves(run, **last)
    for one in lines:
        curves.add(one)
    curves.close()
    return curves


def scalars(run, part):
    """What TensorBoard finds: {tag: [(step, value)]}."""
    accumulator = tensorboard.EventAccumulator(str(run / "events" / part))
    accumulator.Reload()
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in accumulator.Tags()["scalars"]
    }


def assert_tensorboard_reads(run, lines):
    for part in ("train", "validation"):
        found, of_part = scalars(run, part), [one for one in lines if one["part"] == part]
        wanted = {name for one in of_part for name in one} - {"part", "step"}
        assert set(found) == wanted
        for tag in wanted:
            points = [(one["step"], one[tag]) for one in of_part if tag in one]
            assert [step for step, _ in found[tag]] == [step for step, _ in points]
            assert [value for _, value in found[tag]] == pytest.approx([value for _, value in points], rel=1e-6)


def test_points_are_read_as_they_were_added(tmp_path):
    curves = written(tmp_path)
    assert read_lines(tmp_path / "curves.jsonl") == LINES
    assert curves.last == {"train": LINES[5], "validation": LINES[6]}
    assert_tensorboard_reads(tmp_path, LINES)


@pytest.mark.parametrize(
    ("step", "validated", "left"),
    [(-1, -1, 0), (0, -1, 0), (0, 0, 1), (10, 0, 3), (10, 10, 4), (17, 10, 5), (20, 20, 7)],
)
def test_points_after_the_checkpoint_are_dropped(tmp_path, step, validated, left):
    written(tmp_path)
    written(tmp_path, [], step=step, validated=validated)
    assert read_lines(tmp_path / "curves.jsonl") == LINES[:left]
    written(tmp_path, LINES[left:], step=step, validated=validated)
    assert read_lines(tmp_path / "curves.jsonl") == LINES
    assert_tensorboard_reads(tmp_path, LINES)


def test_a_torn_line_and_a_torn_event_are_passed_over(tmp_path):
    written(tmp_path)
    for path in [tmp_path / "curves.jsonl", *tmp_path.glob("events/*/*")]:
        path.write_bytes(path.read_bytes()[:-5])
    written(tmp_path, LINES[6:], step=20, validated=10)
    assert read_lines(tmp_path / "curves.jsonl") == LINES
    assert_tensorboard_reads(tmp_path, LINES)


def test_events_that_are_lost_are_written_again_from_the_curves(tmp_path):
    written(tmp_path)
    for path in tmp_path.glob("events/*/*"):
        path.write_bytes(b"\xff" * 100)
    written(tmp_path, [], step=20, validated=20)
    assert_tensorboard_reads(tmp_path, LINES)


def test_events_keep_their_times_when_a_run_goes_on(tmp_path):
    def times():
        paths = tmp_path.glob("events/train/*")
        return {event.step: event.wall_time for path in paths for event in events.read(path)}

    written(tmp_path)
    before = times()
    written(tmp_path, LINES[5:], step=15, validated=10)
    after = times()
    assert {step: after[step] for step in (5, 10, 15)} == {step: before[step] for step in (5, 10, 15)}
    assert after[20] > before[20]


def test_a_tensorboard_that_is_open_follows_a_run_that_goes_on(tmp_path):
    written(tmp_path)
    accumulator = tensorboard.EventAccumulator(str(tmp_path / "events" / "train"))
    accumulator.Reload()
    assert [event.step for event in accumulator.Scalars("loss")] == [5, 10, 15, 20]
    written(tmp_path, [line(15), line(25)], step=10, validated=10)
    accumulator.Reload()
    assert [event.step for event in accumulator.Scalars("loss")] == [5, 10, 15, 25]


def test_a_loss_that_is_no_number_is_kept_as_such(tmp_path):
    written(tmp_path, [line(5) | {"loss": math.nan}])
    (read,) = read_lines(tmp_path / "curves.jsonl")
    assert math.isnan(read["loss"])


def test_lines_that_are_no_points_are_dropped(tmp_path):
    good = line(2)
    wrong = [
        {"part": "train"},
        {"step": 1},
        [1],
        good | {"step": "2"},
        good | {"step": 2.5},
        good | {"step": -1},
        good | {"step": True},
        good | {"epoch": []},
        good | {"epoch": math.nan},
        good | {"part": "<script>"},
        good | {"loss": "<img src=x onerror=alert(1)>"},
        good | {"loss": None},
        good | {"<b>": 1},
        good | {"accuracy": 10**400},
    ]
    (tmp_path / "curves.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*wrong, good]))
    curves = Curves(tmp_path, step=5)
    assert curves.last == {"train": good}
    curves.close()
    assert read_lines(tmp_path / "curves.jsonl") == [good]


def test_a_full_disk_is_told(tmp_path):
    curves = Curves(tmp_path)
    (tmp_path / "events").write_text("a file where a folder belongs")
    with pytest.raises(DigitsError, match="write events for TensorBoard"):
        curves.add(line(5))
