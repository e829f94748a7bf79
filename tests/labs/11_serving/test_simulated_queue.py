"""The queue in virtual time: by hand, and that broken rules are named."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels.serving.serve.batching.batcher import Batcher, Limits
from kernels.serving.serve.batching.simulated_queue import poisson, serve

_spec = importlib.util.spec_from_file_location("batcher_rules", Path(__file__).with_name("batcher_rules.py"))
batcher_rules = sys.modules.setdefault("batcher_rules", importlib.util.module_from_spec(_spec))
_spec.loader.exec_module(batcher_rules)
violations = batcher_rules.violations

LIMITS = Limits(batch_limit=2, wait_limit=0.5, capacity=3)


def test_by_hand():
    served = serve(Batcher(LIMITS), [0.0, 0.1, 0.2, 0.2, 0.3, 0.4, 3.0], lambda n: 1.0)
    assert [(b.requests, b.start, b.end, b.idle) for b in served.batches] == [
        ((0, 1), 0.1, 1.1, 0.0),  # full
        ((2, 3), 1.1, 2.1, 1.1),
        ((4,), 2.1, 3.1, 2.1),
        ((6,), 3.5, 4.5, 3.1),  # alone, after the wait limit
    ]
    assert served.refused == [5]
    assert served.waiting.tolist() == [0, 1, 0, 1, 2, 3, 0]
    np.testing.assert_allclose(served.latency, [1.1, 1.0, 1.9, 1.9, 2.8, np.nan, 1.5])
    np.testing.assert_allclose(served.wait, [0.1, 0, 0.9, 0.9, 1.8, np.nan, 0.5])
    assert served.throughput == pytest.approx(6 / 4.5)
    assert served.mean_batch == 1.5
    assert served.busy == pytest.approx(4 / 4.5)
    assert violations(served, LIMITS) == []


def test_two_engines():
    served = serve(Batcher(Limits(1, 0.0, 4)), [0.0, 0.1, 0.2], lambda n: 1.0, engines=2)
    assert [(b.start, b.engine) for b in served.batches] == [(0.0, 0), (0.1, 1), (1.0, 0)]


def test_nothing_comes():
    served = serve(Batcher(LIMITS), [], lambda n: 1.0)
    assert (served.batches, served.throughput, served.seconds, served.busy) == ([], 0, 0, 0)
    assert np.isnan(served.mean_batch)
    assert violations(served, LIMITS) == []


def test_poisson_arrivals_have_their_rate():
    moments = poisson(rate=100, count=20_000, seed=3)
    gaps = np.diff(moments, prepend=0)
    error = 4 / np.sqrt(len(gaps))  # an exponential's standard deviation is its mean
    assert gaps.mean() * 100 == pytest.approx(1, abs=error)
    assert gaps.std() * 100 == pytest.approx(1, abs=2 * error)
    assert np.array_equal(moments, poisson(100, 20_000, 3))


class _Broken(Batcher):
    """A Batcher with one method replaced."""


def broken(**methods):
    return type("Broken", (_Broken,), methods)


def _newest(self, now):
    batch = Batcher.take(self, now)
    return batch[::-1]


def _whole_queue(self, now):
    return [request for _ in range(2) for request in Batcher.take(self, now)]


def _drops_one(self, now):
    batch = Batcher.take(self, now)
    return batch[:1]


def _twice(self, now):
    batch = Batcher.take(self, now)
    for request in batch[:1]:
        if request == 0:
            Batcher.offer(self, 0, now)
    return batch


def _never_refuses(self, request, now):
    self._waiting.append((now, request))
    return True


def _full_too_soon(self, request, now):
    return len(self) < 2 and Batcher.offer(self, request, now)


def _says_no_and_keeps(self, request, now):
    Batcher.offer(self, request, now)
    return False


def _only_full(self):
    return Batcher.due(self) if len(self) >= 2 else None


def _waits_for_the_newest(self):
    due = Batcher.due(self)
    return None if due is None else max(due, self._waiting[-1][0] + self.limits.wait_limit)


def _waits_always(self):
    return self._waiting[0][0] + self.limits.wait_limit if len(self) else None


def _never_waits(self):
    return self._waiting[0][0] if len(self) else None


def _take_what_is_there(self, now):
    return [self._waiting.popleft()[1] for _ in range(min(len(self), 2))]


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        ({"take": _newest}, "request 0 leaves after request 1, which came later"),
        ({"take": _whole_queue}, "holds 3 requests; the limit is 2"),
        ({"take": _drops_one}, "is lost: it was accepted and never answered"),
        ({"take": _twice}, "of which some do not wait"),
        ({"take": lambda self, now: []}, "gave no request: the engine would ask for ever"),
        ({"offer": _never_refuses}, "is accepted while 3 wait already and 3 may"),
        ({"offer": _full_too_soon}, "is turned away while 2 wait and 3 may"),
        ({"offer": _says_no_and_keeps}, "of which some do not wait"),
        ({"due": _only_full}, "request 8 is lost"),
        ({"due": _waits_for_the_newest}, "after the limit of its oldest request, while the engine is idle"),
        ({"due": _waits_always, "take": _take_what_is_there}, "was full 0.4 s before, while the engine was idle"),
        ({"due": _never_waits, "take": _take_what_is_there}, "leaves with 1 of 2, 0.5 s before its oldest request"),
    ],
)
def test_a_broken_rule_is_named(methods, reason):
    arrivals = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 5.0, 8.0]
    right = serve(Batcher(LIMITS), arrivals, lambda n: 1.0)
    assert violations(right, LIMITS) == []
    wrong = serve(broken(**methods)(LIMITS), arrivals, lambda n: 1.0)
    assert any(reason in text for text in violations(wrong, LIMITS)), violations(wrong, LIMITS)
