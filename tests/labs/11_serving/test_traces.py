"""Timelines of profilers: spans, the share that NVML would call utilisation, gaps, a summary, and their picture."""

import gzip
import json

import pytest

from kernels.serving.utilisation import traces
from kernels.serving.utilisation.figures import draw_trace
from kernels.serving.utilisation.profiled_program import serve
from kernels.serving.utilisation.virtual import Kernel, looked_at


def event(name, category, start, duration, **about):
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": about}


# Microseconds, as Chrome traces have them; as torch.profiler writes it, with events that are not of the GPU.
TRACE = {
    "traceEvents": [
        {"ph": "M", "name": "process_name"},
        event("aten::zeros", "cpu_op", 0, 5),
        event("cudaLaunchKernel", "cuda_runtime", 90, 10),
        event("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 100, 50, stream=7, bytes=4096),
        event("spin", "kernel", 150, 100, stream=7, grid=[1, 1, 1]),
        event("copy", "kernel", 200, 100, stream=8),
        event("Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", 400, 100, stream=7),
    ]
}


def test_spans_of_a_trace():
    found = traces.spans(TRACE)
    assert [span.kind for span in found] == [traces.CALL, traces.UP, traces.KERNEL, traces.KERNEL, traces.DOWN]
    assert found[0].start == 0
    assert found[1].start == pytest.approx(10e-6)
    assert found[2].seconds == pytest.approx(100e-6)
    assert found[2].about["grid"] == [1, 1, 1]
    assert [span.stream for span in found] == [None, 7, 7, 8, 7]


def test_the_share_of_kernels_is_the_utilisation():
    found = traces.spans(TRACE)
    assert traces.share(found) == pytest.approx(150 / 400)  # 150 to 300 of 100 to 500
    assert traces.share(found, [traces.UP, traces.DOWN]) == pytest.approx(150 / 400)
    kernels = [Kernel(s.start, s.seconds, 1, 1) for s in found if s.kind == traces.KERNEL]
    gpu = traces.on_gpu(found)
    assert traces.share(found) == pytest.approx(looked_at(kernels, gpu[0].start, gpu[-1].end).utilisation)


def test_gaps_are_where_nothing_ran():
    assert traces.gaps(traces.spans(TRACE)) == [(pytest.approx(210e-6), pytest.approx(310e-6))]


def test_a_summary_has_the_longest_first():
    rows = traces.summary(traces.spans(TRACE))
    assert {row["name"]: row["count"] for row in rows} == {"spin": 1, "copy": 1, "copy up": 1, "copy down": 1}
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert rows[-1]["name"] == "copy up"


def test_files_plain_and_packed(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(TRACE))
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(json.dumps(TRACE).encode()))
    assert traces.read(tmp_path / "t.json") == traces.read(tmp_path / "t.json.gz") == traces.spans(TRACE)


def test_the_picture_has_a_row_per_kind():
    (ax,) = draw_trace(traces.spans(TRACE), "a title").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["host: calls", "copy up", "kernel", "copy down"]
    assert "%" not in ax.get_xlabel()  # a prediction asks what follows from the share


def test_no_span_is_too_narrow_to_be_seen():
    short = [traces.Span("spin", traces.KERNEL, 0.1 * k, 1e-7, 7) for k in range(8)]
    (ax,) = draw_trace(short, "a title").axes
    (bars,) = [c for c in ax.collections if len(c.get_paths()) == 8]
    figure_width = ax.get_window_extent().width
    for path in bars.get_paths():
        (left, _), (right, _) = ax.transData.transform(path.get_extents().get_points())
        assert right - left > 1
    assert figure_width > 300


def test_what_is_no_trace_is_refused():
    with pytest.raises(ValueError, match="no Chrome trace"):
        traces.spans({})
    with pytest.raises(ValueError, match="no span on a GPU"):
        traces.share([])


def test_the_program_to_look_at_computes(capsys):
    assert serve(2, 64, 3) == serve(2, 64, 3)
    assert len(serve(3, 64, 3)) == 3
