"""Pictures of streams and pipeline: bars where the operations are, and labels that say whose times they are."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.patches import Rectangle

from kernels.serving import recordings
from kernels.serving.overlap.streams.chunked import WAYS, chunked
from kernels.serving.overlap.streams.figures import draw_overlap, draw_pipeline, draw_timeline, recorded_timeline
from kernels.serving.overlap.streams.hazards import races
from kernels.serving.overlap.streams.pipeline import Stages, one_after_the_other
from kernels.serving.overlap.streams.schedule import Schedule
from kernels.serving.overlap.streams.timeline import simulate

SCHEDULE = chunked(4, 2, h2d=4, kernel=4, d2h=4)


def _bars(figure):
    return [p for p in figure.axes[0].patches if isinstance(p, Rectangle) and p.get_width() > 0]


def _rows(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_bar_for_each_operation_where_it_ran():
    figure = draw_timeline(simulate(SCHEDULE))
    assert _rows(figure) == ["H2D", "SMs", "D2H"]
    assert sorted(p.get_x() for p in _bars(figure)) == sorted(s.start for s in simulate(SCHEDULE).spans)
    assert figure.axes[0].get_xlabel() == "ms (virtual time)"
    assert figure.axes[0].get_title(loc="left") == "7 ms"
    assert not plt.get_fignums()


def test_rows_can_be_streams():
    assert _rows(draw_timeline(simulate(SCHEDULE), "two streams", rows="stream")) == ["stream 0", "stream 1"]


def test_until_cuts_off():
    figure = draw_timeline(simulate(SCHEDULE), until=2)
    assert max(p.get_x() + p.get_width() for p in _bars(figure)) == 2


def test_operations_that_race_are_framed():
    s = Schedule()
    s.h2d("x", 1, ms=1)
    s.kernel("k", 2, ms=1, reads="x")
    s.kernel("other", 3, ms=1)
    framed = [p for p in _bars(draw_timeline(simulate(s), races=races(s))) if p.get_linewidth() == 2]
    assert len(framed) == 2


def test_bars_of_one_row_do_not_cover_each_other():
    s = Schedule()
    s.kernel("a", 1, ms=2, share=0.5)
    s.kernel("b", 2, ms=2, share=0.5)
    one, other = _bars(draw_timeline(simulate(s)))
    assert one.get_y() + one.get_height() <= other.get_y() + 1e-9


def test_the_hosts_waits_are_hatched():
    schedule = one_after_the_other(4, Stages(1, 1, 3))
    assert any(p.get_hatch() for p in _bars(draw_timeline(simulate(schedule))))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="rows is 'engine' or 'stream', not 'bar'"):
        draw_timeline(simulate(SCHEDULE), rows="bar")
    with pytest.raises(ValueError, match="would cover each other; draw a part with until="):
        draw_timeline(simulate(chunked(600, 4, h2d=4, kernel=4, d2h=4)))


def test_the_recorded_ways_are_drawn_with_their_origin():
    measured = recordings.recorded("overlap")
    figure = draw_overlap(measured.value, measured.label)
    assert _rows(figure) == list(WAYS)
    assert measured.label in figure.axes[0].get_xlabel()
    for row in measured.value["rows"]:
        timeline = recorded_timeline(row, measured.label)
        assert set(timeline.engines) == {"H2D", "SMs", "D2H"}
        assert len(timeline.spans) == 3 * WAYS[row["way"]][0]
        assert measured.label in draw_timeline(timeline).axes[0].get_xlabel()


def test_the_model_predicts_the_recorded_ways():
    """In pinned memory within a fifth: copies in both directions slow each other, which the model leaves out."""
    value = recordings.recorded("overlap").value
    for row in value["rows"]:
        chunks, streams, order, pinned = WAYS[row["way"]]
        if pinned:
            predicted = simulate(chunked(chunks, streams, order=order, **value["stage_ms"])).end
            assert 0.8 * row["ms"] < predicted < 1.02 * row["ms"]
        assert row["correct"]


def test_a_pipeline_is_drawn_with_its_prediction():
    rows = [
        {"way": "one after the other", "ms_per_frame": 3.0, "predicted_ms_per_frame": 2.8},
        {"way": "pipeline, depth 2", "ms_per_frame": 2.0, "predicted_ms_per_frame": 1.5},
    ]
    figure = draw_pipeline({"rows": rows, "frames": 8, "clip": "64 × 64"}, "made up for this test")
    assert _rows(figure) == ["one after the other", "pipeline, depth 2"]
    assert [line.get_xdata()[0] for line in figure.axes[0].lines] == [2.8, 1.5]
    assert "made up for this test" in figure.axes[0].get_xlabel()
