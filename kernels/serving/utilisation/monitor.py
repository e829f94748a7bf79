"""A monitor of a GPU beside a running program, as DCGM's: sample, keep, draw, and write down.

    with Monitor() as m:
        train()
    m.draw()
    m.save("run.jsonl")

Without a GPU it plays a recording of another machine, and every picture says so. In a notebook `Monitor(live=True)`
draws while the program runs.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol

from kernels.serving.utilisation.nvml import Activity, NoNvml, NvmlGpu

RECORDING = Path(__file__).with_name("monitor.jsonl")
INTERVAL = 0.1  # seconds; GPM wants at least so much between two readings


@dataclass(frozen=True, kw_only=True)
class Sample(Activity):
    """What one look at the GPU gave, `nvml.Activity` since the look before. None is what the driver does not tell.

    `seconds`: since the monitor began. `utilisation`, `memory_utilisation`: NVML's, of its last sample period, 0 to 1.
    """

    seconds: float
    utilisation: float | None = None
    memory_utilisation: float | None = None
    memory_bytes: int | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    watts: float | None = None
    celsius: int | None = None


class Source(Protocol):
    """Where samples come from. `label`: what a picture must say of their origin."""

    label: str

    def read(self, seconds: float) -> Sample | None:
        """Return the sample at a time since the beginning; None when there are no more."""

    def close(self) -> None:
        """Free what the source holds."""


class NvmlSource:
    """Samples of the GPU in this machine. Raises NoNvml where there is none."""

    def __init__(self, gpu: NvmlGpu | None = None) -> None:
        self._gpu = gpu or NvmlGpu()
        self.label = f"measured on {self._gpu.name}"
        self._last = self._gpu.reading()

    def read(self, seconds: float) -> Sample:
        now = self._gpu.reading()
        activity = self._gpu.between(self._last, now)
        self._gpu.forget(self._last)
        self._last = now
        utilisation, memory_utilisation = self._gpu.utilisation()
        sm_mhz, memory_mhz = self._gpu.clocks()
        return Sample(
            seconds=seconds,
            utilisation=utilisation,
            memory_utilisation=memory_utilisation,
            memory_bytes=self._gpu.memory(),
            sm_mhz=sm_mhz,
            memory_mhz=memory_mhz,
            watts=self._gpu.power(),
            celsius=self._gpu.temperature(),
            **asdict(activity),
        )

    def close(self) -> None:
        self._gpu.forget(self._last)
        self._last = None
        self._gpu.close()


class RecordedSource:
    """Samples that `Monitor.save` wrote, played at the times at which they were taken, from the mark `begin` on."""

    def __init__(self, path: Path | str | None = None, begin: str | None = None) -> None:
        self.about, samples = load(path or RECORDING)
        start = next((seconds for seconds, name in self.about["marks"] if name == begin), 0.0)
        self.about["marks"] = [(seconds - start, name) for seconds, name in self.about["marks"] if seconds >= start]
        self.samples = [replace(s, seconds=s.seconds - start) for s in samples if s.seconds >= start]
        self.label = f"recorded on {self.about['device']}, {self.about['date']}: not of this program"

    def read(self, seconds: float) -> Sample | None:
        """Return the last sample taken until then; None after the end."""
        if not self.samples or seconds > self.samples[-1].seconds:
            return None
        return next((s for s in reversed(self.samples) if s.seconds <= seconds), self.samples[0])

    def close(self) -> None:
        pass


def source() -> Source:
    """Return the GPU of this machine, else the lab's recording. Raises NoNvml where there is neither."""
    try:
        return NvmlSource()
    except NoNvml as error:
        if not RECORDING.exists():
            raise NoNvml(f"{error}; and {RECORDING.name}, a recording to play instead, does not exist") from error
        return RecordedSource()


class Monitor:
    """Samples of a `Source` while a `with` block runs, in a thread of its own.

    `interval`: seconds between samples, at least 0.1, as GPM needs. `live`: draw in the notebook, every half second.
    `mark` names what begins now; pictures show it. ValueError for an interval that is too short.
    """

    def __init__(
        self,
        source_: Source | None = None,
        *,
        interval: float = INTERVAL,
        live: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if interval < INTERVAL:
            raise ValueError(f"interval is {interval} s; NVML's counters want at least {INTERVAL} s between readings")
        self.source = source_ or source()
        self.interval = interval
        self.samples: list[Sample] = []
        self.marks: list[tuple[float, str]] = []
        self._clock, self._began = clock, clock()
        self._picture = _LivePicture() if live else None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def label(self) -> str:
        return self.source.label

    def step(self) -> bool:
        """Take one sample; False when the source has no more."""
        sample = self.source.read(self._clock() - self._began)
        if sample is None:
            return False
        if not self.samples or sample.seconds > self.samples[-1].seconds:
            self.samples.append(sample)
        return True

    def mark(self, name: str) -> None:
        """Name what begins now."""
        self.marks.append((self._clock() - self._began, name))

    def draw(self) -> Any:
        """Draw the samples so far; where they are a recording, with the marks of that."""
        from kernels.serving.utilisation.figures import draw_monitor

        marks = self.marks
        if isinstance(self.source, RecordedSource):
            end = self.samples[-1].seconds if self.samples else 0.0
            marks = [(seconds, name) for seconds, name in self.source.about["marks"] if seconds <= end]
        return draw_monitor(self.samples, self.label, marks)

    def save(self, path: Path | str, about: dict[str, Any] | None = None) -> None:
        """Write JSON lines: what the machine is, then a sample per line.

        `about`: device and date, else those of this machine's GPU (ValueError for samples that are a recording).
        """
        path = Path(path)
        if isinstance(self.source, RecordedSource) and about is None:
            raise ValueError("these samples are a recording that was played, not this machine's; there is nothing new")
        about = about or {"device": self.source.label.removeprefix("measured on "), "date": time.strftime("%Y-%m-%d")}
        lines: Iterable[dict] = ({k: v for k, v in asdict(s).items() if v is not None} for s in self.samples)
        head: dict[str, Any] = {**about, "interval": self.interval, "marks": self.marks}
        path.write_text("".join(json.dumps(_short(line)) + "\n" for line in (head, *lines)))

    def __enter__(self) -> "Monitor":
        self._began = self._clock()
        self._thread = threading.Thread(target=self._run, name="gpu-monitor", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.source.close()
        if self._picture:
            self._picture.show(self.draw())

    def _run(self) -> None:
        drawn = self._began
        while not self._stop.wait(self.interval) and self.step():
            if self._picture and self._clock() - drawn > 0.5:
                drawn = self._clock()
                self._picture.show(self.draw())


def load(path: Path | str) -> tuple[dict[str, Any], list[Sample]]:
    """Return what `Monitor.save` wrote: the machine with its marks, and the samples. ValueError where it is not one."""
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    known = {field.name for field in fields(Sample)}
    if not lines or not {"device", "date"} <= lines[0].keys():
        raise ValueError(f"{path} is no recording of a monitor: its first line does not name device and date")
    for number, line in enumerate(lines[1:], 2):
        if "seconds" not in line or not line.keys() <= known:
            raise ValueError(f"{path}, line {number} is no sample: {', '.join(line.keys() - known) or 'no seconds'}")
    return lines[0], [Sample(**line) for line in lines[1:]]


def draw_recording(path: Path | str | None = None) -> Any:
    """Draw a whole recording, the lab's unless `path` names another, labelled with its origin."""
    from kernels.serving.utilisation.figures import draw_monitor

    about, samples = load(path or RECORDING)
    return draw_monitor(samples, f"recorded on {about['device']}, {about['date']}", about["marks"])


def _short(line: dict[str, Any]) -> dict[str, Any]:
    """Return `line` in JSON types, with four decimals."""
    return json.loads(json.dumps(line), parse_float=lambda text: round(float(text), 4))


class _LivePicture:
    """A picture in the notebook that later ones replace."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        self._image = ipywidgets.Image(format="png")
        display(self._image)

    def show(self, figure: Any) -> None:
        import io

        file = io.BytesIO()
        figure.savefig(file, format="png")
        self._image.value = file.getvalue()
