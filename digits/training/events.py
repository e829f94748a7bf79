"""The curves as TensorBoard reads them: `tensorboard --logdir runs/ID/events`.

Two folders, train and validation, as Keras writes them, so that TensorBoard draws both parts into one chart. When a run
goes on from a checkpoint, its events are written anew from the curves that are left, each with the time it had.
"""

import contextlib
import os
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from digits.files import explained, open_plain

_NOT_DRAWN = ("step", "part")


class Events:
    """Event files of one run; `lines` are the points of its curves so far."""

    def __init__(self, folder: Path, lines: Iterable[dict[str, Any]]) -> None:
        self._folder = Path(folder)
        self._streams: dict[str, Any] = {}
        old = sorted(self._folder.glob("*/*tfevents*"))
        times = {(path.parent.name, event.step): event.wall_time for path in old for event in read(path)}
        self._suffix = f"{time.time_ns()}"
        for line in lines:
            self.add(line, times.get((line["part"], line["step"])))
        for path in old:
            with contextlib.suppress(OSError):
                _empty(path)

    def add(self, line: dict[str, Any], wall_time: float | None = None) -> None:
        """Append a point. Raises DigitsError if the disk is full."""
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in line.items()
            if name not in _NOT_DRAWN and isinstance(value, int | float)
        ]
        event = Event(wall_time=wall_time or time.time(), step=line["step"], summary=Summary(value=values))
        self._write(line["part"], event)

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    def _write(self, part: str, event: Event) -> None:
        with explained("write events for TensorBoard"):
            stream = self._streams.get(part) or self._opened(part)
            RecordWriter(stream).write(event.SerializeToString())
            stream.flush()

    def _opened(self, part: str) -> Any:
        path = self._folder / part / f"events.out.tfevents.{self._suffix}.digits"
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = self._streams[part] = path.open("ab")
        writer = RecordWriter(stream)
        writer.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        # A TensorBoard that is open forgets what it read in the files before this one.
        begun = Event(wall_time=time.time(), step=0, session_log=SessionLog(status=SessionLog.START))
        writer.write(begun.SerializeToString())
        return stream


def _empty(path: Path) -> None:
    """Empty a file of events, and delete one that is empty: an open TensorBoard would keep to one deleted at once."""
    if path.stat().st_size:
        os.close(open_plain(path, os.O_WRONLY | os.O_TRUNC))
    else:
        path.unlink()


def read(path: Path) -> list[Event]:
    """Return the events with figures in a file, up to where it is torn.

    A record is its length (8 bytes), a checksum of the length (4), the event, a checksum of the event (4).
    """
    try:
        with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as stream:
            data = stream.read()
    except OSError:
        return []
    events, at = [], 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        record = data[at + 12 : at + 12 + length]
        if len(record) < length:
            break
        try:
            event = Event.FromString(record)
        except Exception:  # protobuf's error class differs between its implementations
            break
        if event.HasField("summary"):
            events.append(event)
        at += 12 + length + 4
    return events
