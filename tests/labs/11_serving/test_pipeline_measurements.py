"""Lab 11's measurements of streams and pipeline, without a GPU: on a fake one whose kernels the simulator runs."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels.serving.overlap.streams import measurements as pipeline_measurements
from kernels.serving.overlap.streams import video
from kernels.serving.overlap.streams.chunked import chunked
from kernels.serving.overlap.streams.execution import execute
from kernels.serving.overlap.streams.schedule import DEFAULT, Schedule
from kernels.serving.small_network import SmallNetwork
from warpcourse.bench import timing
from warplab import cp

_spec = importlib.util.spec_from_file_location("fake_streams", Path(__file__).with_name("fake_streams.py"))
fake_streams = sys.modules.setdefault("fake_streams", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(fake_streams)

NETWORK = SmallNetwork(layers=1, channels=8, size=4)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(timing, "cupy_on_gpu", lambda: fake_streams.fake)
    monkeypatch.setattr(timing, "time_gpu", _once)
    return fake_streams.fake


def _once(function, **options):
    function()
    return timing.Timing.of([0.001])


@pytest.fixture
def decoder(monkeypatch):
    """NVDEC that is FFmpeg, with frames in device memory; a frame is gone when the next one is asked for."""

    def frames(path, stream=None, *, ahead=True):
        for nv12 in video.frames_on_cpu(path):
            frame = cp.asarray(nv12)
            yield frame
            frame[...] = cp.asarray(np.full(nv12.shape, 255, np.uint8))

    for module in (video, pipeline_measurements.video, sys.modules["kernels.serving.overlap.streams.pipeline_on_gpu"]):
        monkeypatch.setattr(module, "frames_on_nvdec", frames)
    monkeypatch.setattr(pipeline_measurements, "CLIPS", {"320 × 192": (64, 64, 30), "1920 × 1080": (96, 64, 30)})
    monkeypatch.setattr(pipeline_measurements, "NETWORK", NETWORK)


def test_what_runs_in_streams_is_timed_by_events(gpu):
    ran = []
    schedule = Schedule(non_blocking=["copy"])
    schedule.h2d("x", "copy", ms=1, action=lambda: ran.append(fake_streams.cuda.get_current_stream()))
    schedule.record("there", "copy")
    schedule.wait("there")
    schedule.kernel("k", ms=1, reads="x", action=lambda: ran.append(fake_streams.cuda.get_current_stream()))
    schedule.synchronize(event="there")
    schedule.synchronize(stream=DEFAULT)
    schedule.synchronize()
    schedule.host("read", ms=1, action=lambda: ran.append("host"))
    timeline = execute(schedule)
    assert ran[0].non_blocking
    assert ran[1] is fake_streams.Stream.null
    assert ran[2] == "host"
    assert 0 < timeline.of("H2D x").start < timeline.of("H2D x").end <= timeline.of("k").start < timeline.of("k").end
    assert timeline.source == "a fake GPU, by events"


def test_a_stream_that_is_given_is_used(gpu):
    mine, used = fake_streams.Stream(), []
    schedule = Schedule()
    schedule.kernel("k", 3, ms=1, action=lambda: used.append(fake_streams.cuda.get_current_stream()))
    execute(schedule, {3: mine})
    assert used == [mine]


def test_an_operation_without_an_action_is_refused(gpu):
    with pytest.raises(ValueError, match="'H2D x0' in stream 0 has no action: give action="):
        execute(chunked(2, 1, h2d=1, kernel=1, d2h=1))


def test_waiting_for_what_nobody_recorded_does_nothing(gpu):
    schedule = Schedule()
    schedule.wait("never", 1)
    schedule.synchronize(event="never")
    schedule.synchronize(stream=5)
    assert len(execute(schedule).spans) == 3


def test_every_way_to_copy_gives_the_right_result(gpu):
    value = pipeline_measurements.overlap(nbytes=2**12, runs=3)
    assert [row["way"] for row in value["rows"]] == list(pipeline_measurements.WAYS)
    assert all(row["correct"] for row in value["rows"])
    assert all(0 < row["busy_SMs_ms"] < row["ms"] for row in value["rows"])
    json.dumps(value)
    assert "chunks, 4 streams" in pipeline_measurements.TABLES["overlap"].text(value)


def test_a_copy_to_a_wrong_place_is_found(gpu, monkeypatch):
    copy = fake_streams.runtime.memcpyAsync
    to_host = fake_streams.runtime.memcpyDeviceToHost

    def half(to, source, n, kind, stream):
        copy(to, source, n // 2 if kind == to_host else n, kind, stream)

    monkeypatch.setattr(fake_streams.runtime, "memcpyAsync", half)
    assert not any(row["correct"] for row in pipeline_measurements.overlap(nbytes=2**12, runs=1)["rows"])


def test_every_pipeline_answers_as_numpy(gpu, decoder, monkeypatch):
    ways = {"one after the other": (1, 1), "pipeline, depth 2": (2, 1), "pipeline, depth 2, batch 4": (2, 4)}
    assert ways.items() <= pipeline_measurements.RUNS_OF_PIPELINE.items()
    monkeypatch.setattr(pipeline_measurements, "RUNS_OF_PIPELINE", ways)
    value = pipeline_measurements.pipeline(frames=8)
    assert [row["way"] for row in value["rows"]] == list(ways)
    assert all(row["correct"] for row in value["rows"])
    assert all(row["from_numpy"] < 1e-4 for row in value["rows"])
    assert all(row["spans"] for row in value["rows"])
    json.dumps(value)
    assert "pipeline, depth 2, batch 4" in pipeline_measurements.TABLES["pipeline"].text(value)


def test_the_kernels_that_make_planes_are_timed_and_checked(gpu, monkeypatch):
    small = np.random.default_rng(11).integers(0, 256, (96, 96), np.uint8)
    monkeypatch.setattr(np.random, "default_rng", lambda seed: _Given(small))
    monkeypatch.setattr(timing, "native", lambda language, array: array)
    monkeypatch.setattr(timing, "time_together", lambda candidates: {n: timing.Timing.of([1e-3]) for n in candidates})
    value = pipeline_measurements.preprocess_table()
    assert len(value["rows"]) == 4
    assert all(row["correct"] for row in value["rows"])
    json.dumps(value)
    assert "numba_preprocess" in pipeline_measurements.TABLES["preprocess"].text(value)


class _Given:
    """Random numbers that are given: a frame that the simulator takes quickly."""

    def __init__(self, frame):
        self.integers = lambda *size: frame


def test_frames_per_second_are_counted_in_the_middle(gpu, decoder, monkeypatch):
    decode, decoded = pipeline_measurements._decode_together, []

    def stamps(path, sessions):
        """Decode, and give each session a frame per second, each a second behind the one before."""
        decoded.extend(map(len, decode(path, sessions)))
        return [[second + i for second in range(30)] for i in range(sessions)]

    monkeypatch.setattr(pipeline_measurements, "_decode_together", stamps)
    value = pipeline_measurements.nvdec()
    assert len(value["rows"]) == len(pipeline_measurements.CLIPS) * len(pipeline_measurements.SESSIONS)
    assert [row["frames_per_second"] for row in value["rows"]] == [row["sessions"] for row in value["rows"]]
    assert min(decoded) > 20
    json.dumps(value)
    assert "NVDEC, H.264" in pipeline_measurements.TABLES["nvdec"].text(value)


def test_sessions_that_do_not_run_at_the_same_time_have_no_rate():
    with pytest.raises(RuntimeError, match="a session ended before another"):
        pipeline_measurements._rate([list(range(30)), list(range(25, 60))])


@pytest.mark.gpu
def test_every_way_is_right_on_a_gpu():
    rows = pipeline_measurements.overlap(nbytes=2**22, runs=3)["rows"]
    assert all(row["correct"] for row in rows)
