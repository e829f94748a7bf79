"""mbarrier: barriers in shared memory that count arrivals and, in bytes, asynchronous copies.

Threads arrive at those of other blocks of their cluster, too, and copies for these report to them; only threads of its
own block wait at one.

The 64 bits of an mbarrier are opaque in PTX. Here they hold the arrivals expected per phase (bits 0-19), the arrivals
still pending (20-39), the bytes still pending plus 2**21 (40-61), whether it is initialised (62), and the parity of the
current phase (63). A phase ends when neither arrivals nor bytes are pending. PTX ISA, "Parallel Synchronization and
Communication Instructions: mbarrier".

Arrivals that wait for copies (cp.async.mbarrier.arrive) and the bytes of bulk copies are taken into account when a
thread tests the barrier.
"""

from typing import Any, NamedTuple

import numpy as np

from warplab.simulator.errors import DivergentBarrier, UninitializedRead
from warplab.simulator.memory.lane_access import Addresses

_COUNT_BITS, _COUNT = 20, (1 << 20) - 1
_BYTES_BITS, _BYTES_ZERO = 22, 1 << 21
_READY, _PHASE = np.uint64(1) << np.uint64(62), np.uint64(1) << np.uint64(63)
_MOST_BYTES = (1 << 20) - 1  # that may be pending, or come before they are announced
# Failed tests, with nothing arriving anywhere, after which a wait counts as endless; fewer if all that could run waits.
_PATIENCE, _PATIENCE_ALL_WAIT = 50_000, 2_000
_INITIALISE = (
    "One thread must initialise it (init, mbarrier.init), and a __syncthreads() must follow, before any thread uses it."
)
_NEVER_OVER = (
    "Do as many threads arrive as init was told? Does each wait name the next phase (parity)? Do the copies that it "
    "waits for add up to the bytes it expects?"
)


class _Words(NamedTuple):
    """The fields of several mbarriers, int64."""

    expected: np.ndarray
    pending: np.ndarray
    bytes: np.ndarray
    phase: np.ndarray


def _unpack(word: np.ndarray) -> _Words:
    bits = word.view(np.int64)
    return _Words(
        bits & _COUNT,
        bits >> _COUNT_BITS & _COUNT,
        (bits >> 2 * _COUNT_BITS & (1 << _BYTES_BITS) - 1) - _BYTES_ZERO,
        bits >> 63 & 1,
    )


def _pack(words: _Words) -> np.ndarray:
    bits = words.expected | words.pending << _COUNT_BITS | (words.bytes + _BYTES_ZERO) << 2 * _COUNT_BITS
    return bits.view(np.uint64) | _READY | np.where(words.phase == 1, _PHASE, np.uint64(0))


class _Later(NamedTuple):
    """Arrivals or bytes that count once copies are done, one entry per lane. `site`: who announced them."""

    site: Any
    word: np.ndarray  # number of the mbarrier's word
    lanes: np.ndarray
    before: int  # the copies issued before this number
    bytes: np.ndarray | None  # None: an arrival
    copy: int  # number of the bulk copy
    products: int = 0  # the latest instruction of tcgen05 that must be over, or none


class MBarriers:
    """The mbarriers of one chunk. `lanes` are the group's, None for all lanes of the chunk."""

    def __init__(self, chunk) -> None:
        self.chunk, self._every = chunk, chunk.every
        self.later: list[_Later] = []
        self.in_vain = 0  # failed tests since anything arrived
        self.all_wait = 0  # failed tests since anything arrived, or lanes ran that do not wait
        self.tested: tuple | None = None

    @property
    def _view(self) -> np.ndarray:
        return self.chunk.access.shared.views["u8"]

    def _index(self, site, addresses: Addresses, lanes, initialised: bool = True) -> np.ndarray:
        """Return the number of each lane's mbarrier among the 64-bit words of shared memory, after the checks."""
        every = self._every(lanes)
        space, addresses = self.chunk.access.resolve(site, addresses)
        if space != "shared":
            what = f"an mbarrier in {space} memory"
            raise self.chunk.error(site, every[0], what, "An mbarrier must lie in shared memory.")
        if initialised and self.chunk.checked and self._view.size:
            self._require_ready(site, addresses, every)
        for notify in self.chunk.observers.mbarrier:
            notify(site, addresses, lanes, not initialised)
        index = (addresses.at(site.offset) >> np.uint64(3)).view(np.int64)
        return np.broadcast_to(index, every.shape)

    def _require_ready(self, site, addresses: Addresses, every: np.ndarray) -> None:
        place = addresses.at(site.offset).view(np.int64) >> 3
        inside = (place >= 0) & (place < self._view.shape[0])
        bad = inside & (self._view[np.where(inside, place, 0)] & _READY == 0)
        if bad.any():
            lane = every[np.argmax(bad) if bad.shape[0] > 1 else 0]
            what = f"`{site.text.split()[0]}` on an mbarrier that is not initialised"
            raise self.chunk.error(site, lane, what, _INITIALISE, UninitializedRead)

    def _require_own(self, site, index: np.ndarray, lanes) -> None:
        """Demand that threads wait at mbarriers of their own block only."""
        chunk, every = self.chunk, self._every(lanes)
        if chunk.cluster_blocks == 1 or not chunk.checked:
            return
        other = 8 * index // chunk.shared_stride != chunk.block_of[every]
        if other.any():
            what = "a thread waits at an mbarrier of another block of its cluster"
            reason = "Only arrivals and copies reach mbarriers of other blocks: wait at one of its own."
            raise chunk.error(site, every[np.argmax(other)], what, reason)

    # -- instructions ----------------------------------------------------------------------------------------------

    def initialise(self, site, addresses: Addresses, count: np.ndarray, lanes) -> None:
        index = self._index(site, addresses, lanes, initialised=False)
        count = np.broadcast_to(count, index.shape).astype(np.int64)
        self._refuse(site, (count < 1) | (count > _COUNT), count, lanes, f"an mbarrier counts 1 to {_COUNT:,} arrivals")
        zero = np.zeros_like(count)
        self.in_vain = 0
        self._view[index] = _pack(_Words(count, count, zero, zero))

    def invalidate(self, site, addresses: Addresses, lanes) -> None:
        self._view[self._index(site, addresses, lanes)] = 0

    def arrive(self, site, addresses: Addresses, count, expect: np.ndarray | None, drop: bool, lanes) -> np.ndarray:
        """Return the state before each lane's arrival, uint64. `expect`: bytes to wait for besides; `drop`: the lanes
        will not arrive again."""
        index = self._index(site, addresses, lanes)
        self.in_vain = 0
        self._settle(index)
        self._arrived(index, self._every(lanes), ".relaxed" in site.text)
        count = np.broadcast_to(np.asarray(count), index.shape).astype(np.int64)
        self._refuse(site, (count < 1) | (count > _COUNT), count, lanes, f"a thread arrives 1 to {_COUNT:,} times")
        if expect is not None:
            self._add_bytes(site, index, np.broadcast_to(expect, index.shape).astype(np.int64), self._every(lanes))
        return self._arrive(site, index, count, drop, self._every(lanes))

    def expect(self, site, addresses: Addresses, nbytes: np.ndarray, sign: int, lanes) -> None:
        """Execute mbarrier.expect_tx (sign 1) or complete_tx (sign -1)."""
        index = self._index(site, addresses, lanes)
        self._add_bytes(site, index, sign * np.broadcast_to(nbytes, index.shape).astype(np.int64), self._every(lanes))
        self._advance(np.unique(index))

    def arrive_after_copies(self, site, addresses: Addresses, counted: bool, lanes) -> None:
        """Execute cp.async.mbarrier.arrive. `counted` (.noinc): the expected arrivals include this one."""
        index = self._index(site, addresses, lanes)
        if not counted:
            places, lane_count = np.unique(index, return_counts=True)
            words = _unpack(self._view[places])
            self._view[places] = _pack(words._replace(pending=words.pending + lane_count))
        self.later.append(_Later(site, index, self._every(lanes), self.chunk.copies.issued, None, -1))

    def arrive_after_products(self, site, addresses: Addresses, number: int, lanes) -> None:
        """Execute tcgen05.commit: arrive once what the lanes have issued up to instruction `number` is over."""
        index = self._index(site, addresses, lanes)
        self.in_vain = 0
        self.later.append(_Later(site, index, self._every(lanes), 0, None, -1, number))

    def expect_bytes(self, mbarrier, size: np.ndarray, lanes, number: int) -> None:
        """Note that bulk copy `number` will report `size` bytes per lane."""
        site, addresses = mbarrier
        index = self._index(site, addresses, lanes)
        self.in_vain = 0
        self.later.append(_Later(site, index, self._every(lanes), 0, size, number))

    def test(self, site, addresses: Addresses, state, parity: bool, lanes) -> np.ndarray:
        """Execute test_wait, try_wait: is the phase of `state` over? `parity`: `state` is a phase's parity."""
        index = self._again(site, addresses, lanes)
        if index is None:
            index = self._index(site, addresses, lanes)
            self._require_own(site, index, lanes)
            self.tested = site, addresses.base, lanes, index
        self._settle(index)
        current = self._view[index] >> np.uint64(63)
        state = np.broadcast_to(np.asarray(state), index.shape)
        asked = state & state.dtype.type(1) if parity else state >> np.uint64(63)
        over = current != asked
        if over.any():
            self.in_vain = self.all_wait = 0
            for notify in self.chunk.observers.wait_over:
                notify(8 * index[over], self._every(lanes)[over])
            return over
        self.all_wait = self.all_wait + 1 if self.in_vain else 1
        self.in_vain += 1
        self.chunk.waits_in_vain = True
        if self.in_vain > _PATIENCE or self.all_wait > _PATIENCE_ALL_WAIT:
            self._never_over(site, index, lanes)
        return over

    def _again(self, site, addresses: Addresses, lanes) -> np.ndarray | None:
        """Return the words of the latest test, if this one repeats it, as in a loop that waits."""
        if not self.in_vain or self.tested is None:
            return None
        before, base, same, index = self.tested
        return index if before is site and same is lanes and np.array_equal(base, addresses.base) else None

    def _never_over(self, site, index: np.ndarray, lanes) -> None:
        words = _unpack(self._view[index[:1]])
        arrivals, nbytes = int(words.pending[0]), int(words.bytes[0])
        missing = f"{arrivals} arrivals" if arrivals else f"{nbytes} bytes"
        what = f"{missing} of its phase never come" if arrivals or nbytes > 0 else f"{-nbytes} bytes too many have come"
        what = f"threads wait for ever at an mbarrier: {what}"
        raise self.chunk.error(site, self._every(lanes)[0], what, _NEVER_OVER, DivergentBarrier)

    @staticmethod
    def pending_count(state: np.ndarray) -> np.ndarray:
        """Execute mbarrier.pending_count of a state, uint32."""
        return _unpack(state).pending.astype(np.uint32)

    # -- phases ----------------------------------------------------------------------------------------------------

    def _refuse(self, site, wrong: np.ndarray, count: np.ndarray, lanes, rule: str) -> None:
        if wrong.any():
            place = int(np.argmax(wrong))
            what = f"`{site.text.split()[0]}` with a count of {int(count[place]):,}"
            raise self.chunk.error(site, self._every(lanes)[place], what, f"Counts are limited: {rule}.")

    def _add_bytes(self, site, index: np.ndarray, amount: np.ndarray, every: np.ndarray) -> None:
        self.in_vain = 0
        places, inverse = np.unique(index, return_inverse=True)
        words = _unpack(self._view[places])
        total = words.bytes + np.bincount(inverse, amount, places.shape[0]).astype(np.int64)
        wrong = np.abs(total) > _MOST_BYTES
        if wrong.any():
            place = int(np.argmax(wrong))
            nbytes = int(total[place])
            what = f"{nbytes:,} bytes are announced at" if nbytes > 0 else f"{-nbytes:,} bytes too many have come to"
            what += f" an mbarrier, which counts {_MOST_BYTES:,} at most"
            reason = "Do the copies of a phase add up to the bytes that it expects (expect_tx)?"
            raise self.chunk.error(site, every[np.argmax(inverse == place)], what, reason)
        self._view[places] = _pack(words._replace(bytes=total))

    def _arrive(self, site, index: np.ndarray, count: np.ndarray, drop: bool, every: np.ndarray) -> np.ndarray:
        """Let lanes arrive in the order of their numbers; arrivals after the end of a phase count for the next."""
        order = np.argsort(index, kind="stable")
        places, first, inverse = np.unique(index[order], return_index=True, return_inverse=True)
        running = np.cumsum(count[order])
        before = running - count[order]
        before -= before[first][inverse]  # arrivals of earlier lanes at the same mbarrier
        words = _unpack(self._view[places])
        total = np.bincount(inverse, count[order], places.shape[0]).astype(np.int64)
        over = (words.bytes != 0) & (total > words.pending) | (words.expected == 0)
        if over.any():
            self._too_many(site, int(every[order[first[np.argmax(over)]]]))
        expected = np.maximum(words.expected, 1)
        ended = np.where(total < words.pending, 0, 1 + (total - words.pending) // expected)
        ended = np.where(words.bytes != 0, 0, ended)
        left = np.where(ended == 0, words.pending - total, expected - (total - words.pending) % expected)
        # The state that each lane saw: before its own arrival.
        pending, size = words.pending[inverse], expected[inverse]
        past = before >= pending
        phases = np.where(past & (words.bytes == 0)[inverse], 1 + (before - pending) // size, 0)
        seen = np.where(phases == 0, pending - before, size - (before - pending) % size)
        if (count[order] > seen).any():  # arrivals of one thread all count for one phase
            self._too_many(site, int(every[order[np.argmax(count[order] > seen)]]))
        if not self.chunk.translation.counts_arrivals:
            seen = expected[inverse]  # a state is opaque: only `pending_count` makes a number of it
        states = np.empty(index.shape, np.uint64)
        states[order] = _pack(
            _Words(words.expected[inverse], seen, words.bytes[inverse], (words.phase[inverse] + phases) & 1)
        )
        expected = words.expected - total if drop else words.expected
        self._view[places] = _pack(_Words(expected, left, words.bytes, (words.phase + ended) & 1))
        self._phase_over(places[ended > 0])
        return states

    def _too_many(self, site, lane: int) -> None:
        reason = "Is the count given to init too small, or does a thread arrive again before it has waited?"
        raise self.chunk.error(site, lane, "more arrivals at an mbarrier than it expects in this phase", reason)

    def _advance(self, places: np.ndarray) -> None:
        """End the phases for which nothing is pending."""
        words = _unpack(self._view[places])
        over = (words.pending == 0) & (words.bytes == 0)
        if over.any():
            pending = np.where(over, words.expected, words.pending)
            self._view[places] = _pack(words._replace(pending=pending, phase=words.phase ^ over))
            self._phase_over(places[over])

    def _arrived(self, index: np.ndarray, lanes: np.ndarray, relaxed: bool = False) -> None:
        """Order what these lanes have done before what the waiters for this phase will do."""
        for notify in self.chunk.observers.arrive:
            notify(8 * index, lanes, relaxed)

    def _phase_over(self, places: np.ndarray) -> None:
        if places.size:
            for notify in self.chunk.observers.phase_over:
                notify(8 * places)

    def _settle(self, index: np.ndarray) -> None:
        """Finish the copies for which these mbarriers wait, and count their arrivals and bytes."""
        if not self.later:
            return
        places, left = np.unique(index), []
        for later in self.later:
            due = places[np.minimum(np.searchsorted(places, later.word), places.shape[0] - 1)] == later.word
            if not due.any():
                left.append(later)
                continue
            if not due.all():
                left.append(later._replace(**_entries(later, ~due)))
                later = later._replace(**_entries(later, due))
            self._come(later)
        self.later = left

    def _come(self, later: _Later) -> None:
        copies, places = self.chunk.copies, np.unique(later.word)
        self.in_vain = 0
        if later.bytes is None:
            if later.products:
                self.chunk.tensor_memory.complete(later.lanes, later.products)
            else:
                copies.complete_of(later.lanes, later.before)
            self._arrived(later.word, later.lanes)
            words = _unpack(self._view[places])
            arrivals = np.bincount(np.searchsorted(places, later.word), minlength=places.shape[0])
            self._view[places] = _pack(words._replace(pending=np.maximum(words.pending - arrivals, 0)))
        else:
            copies.complete_bulk(later.copy, later.lanes)
            self._arrived(later.word, later.lanes)
            self._add_bytes(later.site, later.word, -later.bytes, later.lanes)
        self._advance(places)


def _entries(later: _Later, chosen: np.ndarray) -> dict:
    return {
        "word": later.word[chosen],
        "lanes": later.lanes[chosen],
        "bytes": None if later.bytes is None else later.bytes[chosen],
    }
