"""Observers of a launch whose loops run as machine code: they are told of the same events as by the arrays' code."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.loop_kernels import LAUNCHES, SOURCE
from tests.warplab.simulator.run.test_narrow_loops import OF_WARPS, OWN, SHAPES, eager, outcome
from warplab import simulator
from warplab.checks.thread_work import ThreadWork
from warplab.simulator.check.access_checks import Checks
from warplab.simulator.observer import Observer
from warplab.simulator.run import narrow_runs
from warplab.simulator.translate import machine_compiler

__all__ = ["eager"]
pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="llvmlite does not know this processor")
EVENTS = ("block", "diverge", "jump", "load", "loaded", "store", "stored")


def observer_of(events, stop_at: int | None = None) -> tuple[Observer, list]:
    """An observer of these events, and the list of what it has seen. `stop_at`: the number of the event at which it
    stops the launch."""
    seen: list[tuple] = []

    def see(*event) -> None:
        if len(seen) == stop_at:
            raise simulator.SimulatorError("enough seen")
        seen.append(event)

    def access(event):
        def method(self, site, space, addresses, lanes, *values) -> None:
            group = self.chunk.group
            assert (lanes is None) == (group.lanes is None)
            where = np.broadcast_to(addresses.at(site.offset), group.count).tolist()
            found = [np.broadcast_to(v, group.count).tobytes() for v in values[0]] if values else []
            see(event, site.index, space, group.all_lanes.tolist(), where, found)

        return method

    methods = {event: access(event) for event in ("load", "loaded", "store", "stored")}
    methods["block"] = lambda self, number, group, time: see("block", number, group.all_lanes.tolist(), time)
    methods["jump"] = lambda self, block, group: see("jump", block.index, group.all_lanes.tolist())
    methods["diverge"] = lambda self, block, *groups: see(
        "diverge", block.index, [g.all_lanes.tolist() for g in groups]
    )
    own = type("Own", (Observer,), {event: methods[event] for event in events})
    return own(), seen


def launched(name: str, shape: str, narrow: bool, observer: Observer, **options) -> tuple:
    if name in LAUNCHES:
        grid, block, make = LAUNCHES[name]
        return outcome(SOURCE, name, grid, block, make(), narrow, observers=(observer,), **options)
    grid, block = SHAPES[shape]
    return outcome(OF_WARPS, name, grid, block, OWN[name](block), narrow, observers=(observer,), **options)


SEEN = ["sums", "strided", "collatz", "ends_early", "own_arrays", "small_types", "same_value", "some_too_far"]
CASES = [(name, list(SHAPES)[k % len(SHAPES)]) for k, name in enumerate(SEEN)]
CASES += [(name, "") for name in ("sort", "vectors", "histogram", "race_of_reads")]


@pytest.mark.parametrize("options", [{}, {"checks": False, "counters": False}], ids=["all", "nothing"])
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_an_observer_sees_the_same_events_in_order(name, shape, options, eager):
    results = []
    for narrow in (False, True):
        observer, seen = observer_of(EVENTS)
        results.append((launched(name, shape, narrow, observer, **options), seen))
        assert (name in eager) == narrow
    (by_arrays, wanted), (by_machine_code, found) = results
    assert {event[0] for event in wanted} >= {"block", "store", "stored"}
    assert found == wanted
    assert by_machine_code == by_arrays


@pytest.mark.parametrize("event", EVENTS)
def test_an_observer_may_stop_a_loop_at_any_event(event, eager):
    results = []
    for narrow in (False, True):
        observer, seen = observer_of([event], stop_at=21)
        results.append(
            (launched("collatz" if event in ("diverge", "jump") else "strided", "one warp", narrow, observer), seen)
        )
    assert results[0] == results[1]
    (_, _, error), seen = results[1]
    assert "enough seen" in error
    assert len(seen) == 21
    assert eager


@pytest.mark.parametrize("events", [[], ["barrier", "atomic", "end_chunk"]])
def test_an_observer_of_nothing_in_a_loop_costs_nothing(events, eager, monkeypatch):
    calls: list[int] = []
    called = narrow_runs.NarrowRuns._called
    monkeypatch.setattr(narrow_runs.NarrowRuns, "_called", lambda self, *a: calls.append(a[0]) or called(self, *a))
    grid, block = SHAPES["one warp"]
    counts = []
    for observers in ((), (type("Own", (Observer,), dict.fromkeys(events, lambda *_: None))(),)):
        eager.clear()
        calls.clear()
        outcome(OF_WARPS, "sums", grid, block, OWN["sums"](block), True, observers=observers)
        counts.append((len(eager), list(calls)))
    assert counts[0] == counts[1]
    assert counts[0][0] > 0


@pytest.mark.parametrize("name", ["sums", "strided", "different_trips", "small_types"])
def test_the_work_of_each_thread_is_the_same(name, eager):
    works = []
    for narrow in (False, True):
        work = ThreadWork()
        launched(name, "three warps", narrow, work)
        works.append((work._busiest, work._totals, work._writing))
        assert (name in eager) == narrow
    assert works[0] == works[1]
    assert works[0][1]["instructions"] > 0


def test_what_a_load_leaves_out_is_seen(eager):
    """A vector load whose first element goes nowhere."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 out)
{
    .reg .b64 %rd<5>;
    .reg .b32 %r<5>;
    .reg .pred %p;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, 0;
    mov.u32 %r3, 0;
LOOP:
    ld.global.v2.u32 {_, %r2}, [%rd1];
    add.u32 %r3, %r3, %r2;
    add.u64 %rd1, %rd1, 8;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 20;
    @%p bra LOOP;
    st.global.u32 [%rd2], %r3;
    ret;
}
"""
    results = []
    for narrow in (False, True):
        device = simulator.Device(64 << 20)
        a, out = device.memory.allocate(160, "a"), device.memory.allocate(4, "out")
        device.memory.view(a, 160).view(np.uint32)[:] = np.arange(40)
        device.memory.mark_initialized(a, 160)
        observer, seen = observer_of(["loaded"])
        options = simulator.Options(machine_code=narrow, observers=(observer,))
        params = [address.to_bytes(8, "little") for address in (a, out)]
        device.launch(simulator.load(text).entries["kernel"], (1,), (1,), params, options=options)
        results.append(seen)
        assert int(device.memory.view(out, 4).view(np.uint32)[0]) == sum(range(1, 40, 2))
    assert eager
    assert results[0] == results[1]
    assert len(results[1]) == 20
    assert np.frombuffer(results[1][3][5][0], np.uint32).tolist() == [6]


class LoadsToo(Checks):
    """Checks as `Checks` does, and sees each load besides."""

    loads = 0

    def watch(self, chunk) -> Observer:
        self.memory = chunk.device.memory
        return super().watch(chunk)

    def load(self, site, space, addresses, lanes) -> None:
        super().load(site, space, addresses, lanes)
        self.loads += 1


def test_a_class_derived_from_one_that_machine_code_knows_is_told_of_all(eager):
    loads = []
    for narrow in (False, True):
        own = LoadsToo(simulator.Device(1 << 20).memory)
        launched("sums", "one warp", narrow, own)
        loads.append(own.loads)
    assert "sums" in eager
    assert loads[0] == loads[1] > 0
    assert Checks.wants(own, "load") == 0
    assert own.wants("load") is None
