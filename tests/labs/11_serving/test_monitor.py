"""The monitor against a GPU in virtual time, its files, and the recording that plays without a GPU."""

import importlib.util
import itertools
import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from kernels.serving.utilisation import monitor
from kernels.serving.utilisation.figures import draw_monitor
from kernels.serving.utilisation.monitor import Monitor, NvmlSource, RecordedSource, Sample, load
from kernels.serving.utilisation.nvml import NoNvml, NvmlGpu

_spec = importlib.util.spec_from_file_location("fake_nvml", Path(__file__).with_name("fake_nvml.py"))
fake_nvml = sys.modules.setdefault("fake_nvml", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(fake_nvml)

ABOUT = {"device": "Virtual H100", "date": "2026-11-23"}


@pytest.fixture
def seen():
    """A monitor that looked at a GPU ten times a second: idle, then one thread, then half the card."""
    fake = fake_nvml.FakeNvml()
    found = Monitor(NvmlSource(NvmlGpu(library=fake)), clock=fake.clock)
    for name, size in {"idle": None, "one thread": (1, 1), "half": (66, 66 * 64)}.items():
        found.mark(name)
        for _ in range(10):
            if size:
                fake.run(0.1, *size)
            fake.clock.sleep(0.1)
            assert found.step()
    found.source.close()
    assert not fake.readings
    assert fake.open == 0
    return found


def _mean(samples, name, after=0.0, until=float("inf")):
    """The mean of a field over the samples in a span of time that tell it; None where none does."""
    values = [getattr(s, name) for s in samples if after <= s.seconds <= until and getattr(s, name) is not None]
    return sum(values) / len(values) if values else None


def test_what_a_monitor_sees(seen):
    assert len(seen.samples) == 30
    assert seen.label == "measured on Virtual H100"
    assert [name for _, name in seen.marks] == ["idle", "one thread", "half"]
    idle, one, half = (
        {field: _mean(seen.samples, field, start + 0.35, start + 1.05) for field in ("utilisation", "sm", "occupancy")}
        for start in (0, 1, 2)
    )
    assert idle == {"utilisation": 0, "sm": 0, "occupancy": 0}
    assert one["utilisation"] == pytest.approx(1, abs=0.03)
    assert half["utilisation"] == pytest.approx(1, abs=0.03)
    assert one["sm"] == pytest.approx(1 / 132, rel=0.02)
    assert half["sm"] == pytest.approx(half["occupancy"], rel=1e-6) == pytest.approx(0.5, rel=0.02)
    assert _mean(seen.samples, "watts") is None  # the fake refuses
    assert seen.samples[0].memory_bytes == 3 * 2**30


def test_a_recording_comes_back_and_plays_with_its_label(seen, tmp_path):
    path = tmp_path / "run.jsonl"
    seen.save(path, ABOUT)
    about, samples = load(path)
    assert about["device"] == "Virtual H100"
    assert [tuple(mark) for mark in about["marks"]] == [(round(t, 4), name) for t, name in seen.marks]
    assert len(samples) == len(seen.samples)
    assert all(
        a.sm == pytest.approx(b.sm, abs=1e-4) and a.watts is b.watts is None
        for a, b in zip(samples, seen.samples, strict=True)
    )
    source = RecordedSource(path)
    assert source.label == "recorded on Virtual H100, 2026-11-23: not of this program"
    assert source.read(0.0) == samples[0]
    assert source.read(samples[4].seconds + 0.01) == samples[4]
    assert source.read(100) is None


def test_a_recording_can_be_played_from_a_mark_on(seen, tmp_path):
    seen.save(tmp_path / "run.jsonl", ABOUT)
    begin, name = seen.marks[1]
    source = RecordedSource(tmp_path / "run.jsonl", begin=name)
    assert [mark for _, mark in source.about["marks"]] == [mark for _, mark in seen.marks[1:]]
    kept = [s for s in load(tmp_path / "run.jsonl")[1] if s.seconds >= round(begin, 4)]
    assert len(source.samples) == len(kept) < len(seen.samples)
    assert source.samples[0].seconds == pytest.approx(kept[0].seconds - begin, abs=1e-3)


def test_playing_adds_no_sample_twice(seen, tmp_path):
    seen.save(tmp_path / "run.jsonl", ABOUT)
    time = iter([0.0, *(0.05 * k for k in range(1, 200))])
    played = Monitor(RecordedSource(tmp_path / "run.jsonl"), clock=lambda: next(time))
    while played.step():
        pass
    assert [s.seconds for s in played.samples] == [s.seconds for s in load(tmp_path / "run.jsonl")[1]]
    (above, *_) = played.draw().axes
    assert {text.get_text() for text in above.texts} == {"idle", "one thread", "half"}
    with pytest.raises(ValueError, match="these samples are a recording"):
        played.save(tmp_path / "again.jsonl")


def test_the_thread_samples_until_the_block_ends(seen, tmp_path):
    seen.save(tmp_path / "run.jsonl", ABOUT)

    class Endless(RecordedSource):
        looks = 0
        closed = False

        def read(self, seconds):
            self.looks += 1
            if self.looks == 3:
                arrived.set()
            return Sample(seconds=seconds)

        def close(self):
            self.closed = True

    import threading

    arrived = threading.Event()
    source = Endless(tmp_path / "run.jsonl")
    with Monitor(source) as m:
        assert arrived.wait(60)
    assert source.closed
    assert len(m.samples) == source.looks >= 3
    looks = source.looks
    assert m._thread
    assert not m._thread.is_alive()
    assert source.looks == looks


def test_the_picture_names_its_origin_and_what_began(seen):
    figure = seen.draw()
    above, below, _ = figure.axes
    assert above.get_title(loc="left") == "measured on Virtual H100"
    assert {line.get_label() for line in above.lines} >= {"utilisation (NVML)", "SM activity", "occupancy"}
    assert {text.get_text() for text in above.texts} == {"idle", "one thread", "half"}
    assert not any(line.get_label() == "power" for line in below.lines)  # nobody told
    assert not plt.get_fignums()


def test_a_live_picture_is_there_when_the_block_ends(seen, tmp_path, capsys):
    seen.save(tmp_path / "run.jsonl", ABOUT)
    with Monitor(RecordedSource(tmp_path / "run.jsonl"), live=True) as m:
        m.step()
    assert bytes(m._picture._image.value).startswith(b"\x89PNG")
    assert m.samples


def test_drawing_in_a_thread_leaves_the_programs_settings_alone(seen, monkeypatch):
    def shared(*_, **__):
        raise AssertionError("pyplot and its settings belong to the program")

    for name in ("subplots", "figure", "rc_context", "close"):
        monkeypatch.setattr(plt, name, shared)
    assert seen.draw().axes


def test_without_a_gpu_the_recording_plays(monkeypatch, seen, tmp_path):
    def none():
        raise NoNvml("NVML finds no GPU 0")

    monkeypatch.setattr(monitor, "NvmlSource", none)
    monkeypatch.setattr(monitor, "RECORDING", tmp_path / "run.jsonl")
    with pytest.raises(
        NoNvml, match=r"NVML finds no GPU 0; and run.jsonl, a recording to play instead, does not exist"
    ):
        monitor.source()
    seen.save(tmp_path / "run.jsonl", ABOUT)
    assert isinstance(monitor.source(), RecordedSource)
    (above, *_) = monitor.draw_recording().axes
    assert above.get_title(loc="left") == "recorded on Virtual H100, 2026-11-23"


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"seconds": 1}) + "\n")
    with pytest.raises(ValueError, match="its first line does not name device and date"):
        load(path)
    path.write_text(json.dumps(ABOUT) + "\n" + json.dumps({"seconds": 1, "colour": 2}) + "\n")
    with pytest.raises(ValueError, match="line 2 is no sample: colour"):
        load(path)
    with pytest.raises(ValueError, match=r"interval is 0\.01 s; NVML's counters want at least 0\.1 s"):
        Monitor(None, interval=0.01)


def test_names_of_marks_do_not_lie_on_each_other():
    samples = [Sample(seconds=0.1 * number, utilisation=0.5) for number in range(1, 101)]
    marks = [
        (0.0, "idle"),
        (0.2, "warm up"),
        (0.4, "a kernel of one thread, 25 % of the time"),
        (5.0, "spin"),
        (7.5, "on"),
    ]
    figure = draw_monitor(samples, "a label", marks)
    figure.canvas.draw()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    told = [text.get_text().replace("\n", " ") for text in texts]
    assert told == [name.replace("25 %", "25\u00a0%") for _, name in marks]  # which one line holds
    boxes = [text.get_window_extent() for text in texts]
    title = figure.axes[0].get_title(loc="left")
    assert title == "a label"
    assert [(a, b) for a, b in itertools.combinations(range(len(boxes)), 2) if boxes[a].overlaps(boxes[b])] == []
