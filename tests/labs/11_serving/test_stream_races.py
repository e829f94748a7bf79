"""Races of schedules: by what must happen before what, never by luck of the times."""

import importlib.util
import random
from dataclasses import replace
from pathlib import Path

import pytest

from kernels.serving.overlap.streams.hazards import races
from kernels.serving.overlap.streams.schedule import DEFAULT, Schedule, dependencies
from tests.support.random_inputs import generator

_spec = importlib.util.spec_from_file_location("lab11_test_streams", Path(__file__).with_name("test_streams.py"))
_streams = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_streams)


def _two(between=lambda s: None, *, before=lambda s: None, **options):
    """A copy in one stream, a kernel that reads its result in another."""
    s = Schedule(**options)
    before(s)
    s.h2d("x", "copy", ms=1)
    between(s)
    s.kernel("k", "run", ms=1, reads="x", writes="y")
    return s


def test_a_missing_wait_is_told_with_both_operations_and_the_buffer():
    (race,) = races(_two())
    assert (race.first.name, race.second.name, race.buffer, race.conflict) == ("H2D x", "k", "x", "read after write")
    assert str(race) == (
        "'H2D x' in stream copy and 'k' in stream run race on 'x' (read after write): record an event in stream copy "
        "after 'H2D x', and let stream run wait for it before 'k'."
    )


def _event(s):
    s.record("up", "copy")
    s.wait("up", "run")


@pytest.mark.parametrize(
    "between",
    [
        _event,
        lambda s: s.synchronize(),
        lambda s: s.synchronize(stream="copy"),
        lambda s: (s.record("up", "copy"), s.synchronize(event="up")),
        lambda s: (s.record("up", "copy"), s.wait("up", "other"), s.record("on", "other"), s.wait("on", "run")),
        lambda s: s.kernel("null", DEFAULT, ms=0),
    ],
    ids=["event", "device", "stream", "host waits for the event", "through a third stream", "legacy default stream"],
)
def test_what_orders_them(between):
    assert races(_two(between)) == []


@pytest.mark.parametrize(
    ("between", "hint"),
    [
        (lambda s: s.wait("up", "run"), ""),
        (lambda s: s.record("up", "copy"), "let stream run wait for 'up', which is recorded after 'H2D x', before 'k'"),
        (lambda s: (s.wait("up", "run"), s.record("up", "copy")), "nothing had recorded that event yet"),
        (lambda s: s.synchronize(stream="run"), "record an event"),
        (lambda s: s.host("a long pause", ms=1e6), "record an event"),
        (lambda s: (s.record("up", "copy"), s.wait("up", "other")), "let stream run wait for 'up'"),
    ],
)
def test_what_does_not(between, hint):
    (race,) = races(_two(between))
    assert hint in race.missing


def test_a_wait_for_an_older_record_says_so():
    (race,) = races(_two(lambda s: s.wait("up", "run"), before=lambda s: s.record("up", "copy")))
    assert "wait for 'up', but that was recorded before 'H2D x' was issued" in race.missing


def test_a_wait_that_comes_too_late_says_so():
    s = _two(lambda s: s.record("up", "copy"))
    s.wait("up", "run")
    (race,) = races(s)
    assert "It waits for that only after 'k' was issued" in race.missing


@pytest.mark.parametrize(
    ("options", "count"),
    [({}, 0), ({"default_stream": "per-thread"}, 1), ({"non_blocking": ["run"]}, 1), ({"non_blocking": ["copy"]}, 1)],
)
def test_the_default_stream_orders_only_streams_that_block(options, count):
    assert len(races(_two(lambda s: s.kernel("null", DEFAULT, ms=0), **options))) == count


def test_two_reads_are_no_race():
    s = Schedule()
    s.kernel("a", 1, ms=1, reads="w", writes="y1")
    s.kernel("b", 2, ms=1, reads="w", writes="y2")
    assert races(s) == []


def test_the_host_reads_too_early_and_writes_too_early():
    s = Schedule()
    s.host("fill", ms=1, writes="host x")
    s.h2d("x", 1, ms=1)
    s.host("fill again", ms=1, writes="host x")
    s.d2h("x", 1, ms=1, target="result")
    s.host("read", ms=1, reads="result")
    found = races(s)
    assert [(r.first.name, r.second.name, r.buffer) for r in found] == [
        ("H2D x", "fill again", "host x"),
        ("D2H x", "read", "result"),
    ]
    assert "the host must wait for 'D2H x' in stream 1 before 'read' on the host" in found[1].missing


def test_pageable_copies_have_read_and_written_host_memory_when_they_return():
    s = Schedule()
    s.h2d("x", 1, ms=1, pinned=False)
    s.host("fill again", ms=1, writes="host x")
    s.d2h("x", 1, ms=1, target="result", pinned=False)
    s.host("read", ms=1, reads="result")
    assert races(s) == []


def test_a_pageable_copy_to_the_device_may_not_have_arrived():
    s = Schedule()
    s.h2d("x", 1, ms=1, pinned=False)
    s.kernel("k", 2, ms=1, reads="x")
    assert len(races(s)) == 1


def test_one_missing_wait_is_told_once():
    s = Schedule()
    for i in range(3):
        s.h2d(f"x{i}", "copy", ms=1)
    for i in range(3):
        s.kernel(f"k{i}", "run", ms=1, reads=["x0", "x1", "x2"], writes=f"y{i}")
    (race,) = races(s)
    assert (race.first.name, race.second.name) == ("H2D x2", "k0")


def _reachable(schedule):
    """For each operation those that happen before it, by walking backwards: another way to the same answer."""
    before, host, found = dependencies(schedule), set(), []
    for o in schedule:
        own = set()
        for j in before[o.index]:
            own |= {j} | (found[j] if schedule.operations[j].kind != "sync" else set())
        if o.kind == "sync":
            host |= own
            own = set(host)
        elif o.kind == "host":
            own = set(host)
            host.add(o.index)
        else:
            own |= host
            if o.kind == "d2h" and not o.pinned:
                host |= own | {o.index}
        found.append(own)
    return found


def test_random_schedules_race_where_nothing_orders_them():
    rng = random.Random(int(generator().integers(2**32)))
    seen = 0
    for _ in range(300):
        s = _streams.random_schedule(rng)
        if any(o.kind == "h2d" and not o.pinned for o in s):
            continue  # their reads happen in the host's order: tested above
        before = _reachable(s)
        unordered = [
            (a.name, b.name)
            for b in s
            for a in s.operations[: b.index]
            if a.index not in before[b.index]
            and (set(a.writes) & {*b.reads, *b.writes} or set(b.writes) & {*a.reads, *a.writes})
        ]
        found = [(r.first.name, r.second.name) for r in races(s)]
        assert set(found) <= set(unordered)
        assert bool(found) == bool(unordered)
        seen += bool(found)
    assert 30 < seen < 270


def test_what_is_repaired_as_told_has_no_race():
    """Each race that is found, repaired by the event that its text asks for: none is left."""
    rng = random.Random(int(generator().integers(2**32)))
    for _ in range(200):
        s = _streams.random_schedule(rng)
        repaired = Schedule(default_stream=s.default_stream, non_blocking=s.non_blocking)
        found = races(s)
        for o in s:
            for race in (r for r in found if r.second.index == o.index):
                name = f"repair {race.first.index}"
                if o.kind == "host" or (o.kind == "h2d" and not o.pinned and race.buffer in o.reads):
                    repaired.synchronize(event=name)
                else:
                    repaired.wait(name, o.stream)
            repaired._operations.append(replace(o, index=len(repaired)))
            if o.stream is not None and o.kind not in ("sync", "host"):
                repaired.record(f"repair {o.index}", o.stream)
        assert races(repaired) == []
