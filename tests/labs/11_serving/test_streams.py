"""Schedules of stream operations: CUDA's rules of order, and the timelines that follow from them."""

import random

import pytest

from kernels.serving.overlap.streams.chunked import chunked
from kernels.serving.overlap.streams.schedule import DEFAULT, ON_HOST, Operation, Schedule, ScheduleError, dependencies
from kernels.serving.overlap.streams.timeline import ONE_COPY_ENGINE, TODAY, Machine, simulate
from tests.support.random_inputs import generator


def _times(schedule, machine=TODAY):
    return {s.operation.name: (s.start, s.end) for s in simulate(schedule, machine).spans}


def test_operations_of_one_stream_run_one_after_the_other():
    s = Schedule()
    s.h2d("x", 1, ms=2)
    s.kernel("k", 1, ms=3, reads="x", writes="y")
    s.d2h("y", 1, ms=1)
    assert _times(s) == {"H2D x": (0, 2), "k": (2, 5), "D2H y": (5, 6)}


def test_streams_run_beside_each_other():
    s = Schedule()
    s.h2d("x", 1, ms=2)
    s.kernel("k", 2, ms=3)
    s.d2h("y", 3, ms=1)
    s.decode("f", 4, ms=4)
    assert [start for start, _ in _times(s).values()] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("share", "second"), [(0.5, 0), (0.51, 3), (1, 3)], ids=["fit together", "do not fit", "fill the GPU"]
)
def test_kernels_share_the_sms_while_they_fit(share, second):
    s = Schedule()
    s.kernel("a", 1, ms=3, share=share)
    s.kernel("b", 2, ms=3, share=share)
    assert _times(s)["b"][0] == second


def test_a_wait_holds_its_stream_back_and_no_other():
    s = Schedule()
    s.h2d("x", 1, ms=2)
    s.record("there", 1)
    s.h2d("z", 1, ms=5)
    s.wait("there", 2)
    s.kernel("k", 2, ms=1, reads="x")
    s.kernel("free", 3, ms=1)
    times = _times(s)
    assert times["k"][0] == 2  # what was issued after the record does not matter
    assert times["free"][0] == 0


def test_a_wait_is_for_the_latest_record_before_it():
    s = Schedule()
    s.kernel("a", 1, ms=1)
    s.record("e", 1)
    s.kernel("b", 1, ms=1)
    s.record("e", 1)
    s.wait("e", 2)
    s.d2h("x", 2, ms=1)
    s.kernel("c", 1, ms=1)
    s.record("e", 1)
    assert _times(s)["D2H x"][0] == 2


def test_a_wait_for_an_event_that_nobody_recorded_does_nothing():
    s = Schedule()
    s.wait("e", 2)
    s.d2h("x", 2, ms=1)
    s.kernel("k", 1, ms=3)
    s.record("e", 1)
    assert _times(s)["D2H x"][0] == 0


@pytest.mark.parametrize(("options", "start"), [({}, 3), ({"stream": 1}, 2), ({"stream": 2}, 3), ({"event": "e"}, 2)])
def test_the_host_waits(options, start):
    s = Schedule()
    s.kernel("k", 1, ms=2, share=0.5)
    s.record("e", 1)
    s.kernel("long", 2, ms=3, share=0.5)
    s.synchronize(**options)
    s.d2h("x", 3, ms=1)
    assert _times(s)["D2H x"][0] == start


def test_the_host_works_and_issues_nothing_meanwhile():
    s = Schedule()
    s.kernel("a", 1, ms=1)
    s.host("work", ms=5)
    s.kernel("b", 1, ms=1)
    assert _times(s) == {"a": (0, 1), "work": (0, 5), "b": (5, 6)}


def test_calls_cost_the_host_time():
    s = Schedule()
    for i in range(3):
        s.kernel(f"k{i}", i, ms=0.25, share=0.1)
    assert [start for start, _ in _times(s, Machine("slow host", issue_ms=1)).values()] == [0, 1, 2]


@pytest.mark.parametrize(("pinned", "end"), [(True, 4), (False, 6)])
def test_a_pageable_copy_keeps_the_host(pinned, end):
    assert simulate(chunked(2, 2, h2d=2, kernel=2, d2h=2, pinned=pinned)).end == end


@pytest.mark.parametrize(
    ("default_stream", "non_blocking", "end"),
    [("legacy", [], 9), ("per-thread", [], 3), ("legacy", [1, 2], 3)],
    ids=["legacy", "per thread", "non-blocking streams"],
)
def test_the_legacy_default_stream_waits_and_is_waited_for(default_stream, non_blocking, end):
    s = Schedule(default_stream=default_stream, non_blocking=non_blocking)
    s.kernel("a", 1, ms=3, share=0.3)
    s.kernel("b", DEFAULT, ms=3, share=0.3)
    s.kernel("c", 2, ms=3, share=0.3)
    assert simulate(s).end == end


@pytest.mark.parametrize(
    ("streams", "order", "machine", "end"),
    [
        (1, "depth", TODAY, 12),
        (2, "depth", TODAY, 7),
        (2, "breadth", TODAY, 8),
        (3, "depth", TODAY, 6),
        (4, "breadth", TODAY, 6),
        (4, "depth", ONE_COPY_ENGINE, 8),
    ],
)
def test_how_long_four_chunks_take(streams, order, machine, end):
    """One queue for both directions: depth first, the copy back that waits for its kernel holds up the next copy in."""
    assert simulate(chunked(4, streams, h2d=4, kernel=4, d2h=4, order=order), machine).end == end


def test_a_copy_engine_goes_on_with_its_stream():
    s = Schedule()
    for name, stream in (("a", 0), ("b", 1), ("c", 0), ("d", 1)):
        s.h2d(name, stream, ms=1)
    assert [_times(s)[f"H2D {name}"][0] for name in "abcd"] == [0, 2, 1, 3]


def test_what_a_timeline_tells():
    t = simulate(chunked(2, 2, h2d=2, kernel=4, d2h=2))
    assert (t.end, t.engines) == (6, ("H2D", "SMs", "D2H"))
    assert (t.busy("H2D"), t.busy("SMs"), t.overlap("H2D", "SMs"), t.overlap("SMs", "D2H")) == (2, 4, 1, 1)
    assert t.of("kernel 1").start == 3
    assert "kernel 1  SMs   stream 1            3.000     5.000" in str(t)
    with pytest.raises(KeyError, match="no operation 'kernel 9'; there are H2D x0, kernel 0"):
        t.of("kernel 9")


def test_busy_counts_time_once():
    s = Schedule()
    s.kernel("a", 1, ms=3, share=0.5)
    s.kernel("b", 2, ms=2, share=0.5)
    assert simulate(s).busy("SMs") == 3


def test_without_leaves_out_and_numbers_anew():
    s = Schedule(default_stream="per-thread", non_blocking=["a"])
    first, wait, last = s.kernel("k", "a", ms=1), s.wait("e", "a"), s.h2d("x", "a", ms=1, pinned=False)
    left = s.without(wait)
    assert [o.name for o in left] == [first.name, last.name]
    assert [o.index for o in left] == [0, 1]
    assert not left.operations[1].pinned
    assert (left.default_stream, left.non_blocking) == (s.default_stream, s.non_blocking)
    assert len(s) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.h2d("x", 1, ms=-1), "'H2D x' takes ms=-1"),
        (lambda s: s.kernel("k", 1, ms=float("nan")), "'k' takes ms=nan"),
        (lambda s: s.kernel("k", 1, ms=1, share=0), "share=0; a kernel fills more than 0"),
        (lambda s: s.kernel("k", None, ms=1), "'k' has stream=None"),
        (lambda s: s.synchronize(stream=1, event="e"), "not with both"),
        (lambda s: Schedule(default_stream="old"), "default_stream is 'legacy' or 'per-thread', not 'old'"),
    ],
)
def test_what_cannot_be_issued_is_refused(call, message):
    with pytest.raises(ScheduleError, match=message):
        call(Schedule())


@pytest.mark.parametrize("options", [{"copy_engines": 3}, {"decoders": 0}, {"issue_ms": -1}])
def test_a_machine_that_cannot_be_is_refused(options):
    with pytest.raises(ValueError, match="odd: "):
        Machine("odd", **options)


def test_chunked_refuses_what_makes_no_sense():
    for bad in ({"order": "wide"}, {"chunks": 0}, {"streams": -1}):
        with pytest.raises(ValueError, match=r"order is one of|at least one chunk"):
            chunked(**{"chunks": 2, "streams": 1, "h2d": 1, "kernel": 1, "d2h": 1} | bad)


def random_schedule(rng: random.Random) -> Schedule:
    """Up to 25 operations of all kinds, in four streams, on three buffers and three events."""
    s = Schedule(
        default_stream=rng.choice(["legacy", "per-thread"]), non_blocking=rng.sample([0, 1, 2], rng.randrange(3))
    )
    for i in range(rng.randrange(1, 26)):
        stream, ms = rng.choice([0, 1, 2, DEFAULT]), rng.randrange(1, 5)
        buffer, event = f"b{rng.randrange(3)}", f"e{rng.randrange(3)}"
        kind = rng.choice(["h2d", "d2h", "kernel", "kernel", "record", "wait", "sync", "host", "decode"])
        if kind in ("h2d", "d2h"):
            getattr(s, kind)(buffer, stream, ms=ms, pinned=rng.random() < 0.7)
        elif kind == "kernel":
            s.kernel(
                f"k{i}", stream, ms=ms, reads=f"b{rng.randrange(3)}", writes=buffer, share=rng.choice([0.25, 0.5, 1])
            )
        elif kind in ("record", "wait"):
            getattr(s, kind)(event, stream)
        elif kind == "sync":
            s.synchronize(**rng.choice([{}, {"stream": stream}, {"event": event}]))
        elif kind == "host":
            s.host(f"h{i}", ms=ms, writes=f"host {buffer}")
        else:
            s.decode(f"d{i}", stream, ms=ms, writes=buffer)
    return s


def test_random_schedules_keep_all_rules():
    """What waits starts after what it waits for, no engine does more than it can, and none idles with work to do."""
    rng = random.Random(int(generator().integers(2**32)))
    for _ in range(300):
        s = random_schedule(rng)
        machine = Machine("m", rng.choice([1, 2]), rng.choice([1, 2]), rng.choice([0, 0.5]))
        spans = simulate(s, machine).spans
        before = dependencies(s)
        for span in spans:
            o = span.operation
            ready = max([span.issued, *(spans[j].end for j in before[o.index])])
            assert span.issued <= span.start
            assert (span.end if o.kind == "sync" else span.start) >= ready
            assert o.kind == "sync" or span.end == span.start + o.ms
            if o.kind in ("record", "wait"):
                assert span.start == ready
            if o.kind in ON_HOST or span.engine is None:
                continue
            room = machine.decoders if span.engine == "NVDEC" else 1
            beside = [t for t in spans if t.engine == span.engine and t.start <= span.start < t.end]
            assert sum(t.operation.share for t in beside) <= room + 1e-9
            if span.start > ready:
                full = [t for t in spans if t.engine == span.engine and t.start <= ready < t.end]
                assert full, f"{o} waits from {ready} to {span.start}, and {span.engine} is idle"
        issued = [span.issued for span in spans]
        assert issued == sorted(issued)


def test_an_operation_says_where_it_is():
    assert str(Operation(0, "kernel", "k", 3)) == "'k' in stream 3"
    assert str(Operation(0, "host", "read")) == "'read' on the host"
