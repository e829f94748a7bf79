"""Generators: every schedule is right for many sizes, keeps its promises, and no single mutation slips through."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.collectives import recursive, ring, scatter_gather, tree
from kernels.collectives.interpreter import run
from kernels.collectives.schedule import ADDING, Schedule, ScheduleError, Send, check_schedule

RANKS = st.integers(1, 9)
POWERS = st.sampled_from([1, 2, 4, 8, 16])
ROOTED = (
    ring.ring_broadcast,
    ring.ring_reduce,
    tree.tree_broadcast,
    tree.binary_tree_broadcast,
    tree.tree_all_reduce,
)
PARTS = (ring.ring_reduce_scatter, ring.ring_all_gather, ring.ring_all_reduce)
POWER_OF_TWO = (
    recursive.recursive_doubling_all_reduce,
    recursive.recursive_halving_reduce_scatter,
    recursive.recursive_doubling_all_gather,
    recursive.halving_doubling_all_reduce,
)


@st.composite
def schedules(draw, least_ranks=1, most_slices=9):
    """A schedule of any generator, any number of ranks and slices, any root."""
    ranks, slices = draw(st.integers(least_ranks, 9)), draw(st.integers(1, most_slices))
    root = draw(st.integers(0, ranks - 1))
    family = draw(st.sampled_from(["rooted", "parts", "power", "scatter", "order"]))
    if family == "rooted":
        return draw(st.sampled_from(ROOTED))(ranks, slices, root)
    if family == "parts":
        return draw(st.sampled_from(PARTS))(ranks, ranks * (slices % 3 + 1))
    if family == "power":
        power = draw(st.sampled_from([k for k in (1, 2, 4, 8, 16) if k >= least_ranks]))
        return draw(st.sampled_from(POWER_OF_TWO))(power, power * (slices % 3 + 1))
    if family == "scatter":
        return scatter_gather.scatter_all_gather_broadcast(ranks, ranks * (slices % 3 + 1), root)
    order = draw(st.permutations(range(ranks)))
    if draw(st.booleans()):
        return ring.ring_broadcast(ranks, slices, root, order)
    return draw(st.sampled_from(PARTS))(ranks, ranks * (slices % 3 + 1), order)


def inputs(schedule, n):
    """A buffer per rank: what a rank must not read is poisoned."""
    data = [np.arange(n, dtype=np.float64) * 1.5 + 1000 * rank + 1 for rank in range(schedule.ranks)]
    if schedule.collective in ADDING:
        return data, data
    poisoned = [np.full(n, np.nan) for _ in data]
    if schedule.collective == "broadcast":
        poisoned[schedule.root] = data[schedule.root]
    else:
        for rank, array in enumerate(data):
            mine = owned(schedule, rank, n)
            poisoned[rank][mine] = array[mine]
    return data, poisoned


def owned(schedule, rank, n):
    mine = schedule.owned(rank)
    return schedule.elements(Send(0, 0, 0, mine.start, count=len(mine)), n)


def is_right(schedule, data, results):
    """Whether the results are what MPI's collective of this name would give."""
    n, total = data[0].size, sum(data)
    for rank, result in enumerate(results):
        match schedule.collective:
            case "broadcast":
                good = np.array_equal(result, data[schedule.root])
            case "all-reduce":
                good = np.allclose(result, total, rtol=1e-12)
            case "reduce":
                good = rank != schedule.root or np.allclose(result, total, rtol=1e-12)
            case "reduce-scatter":
                mine = owned(schedule, rank, n)
                good = np.allclose(result[mine], total[mine], rtol=1e-12)
            case "all-gather":
                good = all(
                    np.array_equal(result[owned(schedule, r, n)], data[r][owned(schedule, r, n)])
                    for r in range(schedule.ranks)
                )
        if not good:
            return False
    return True


@settings(max_examples=300)
@given(schedules(), st.integers(0, 40))
def test_every_schedule_is_right(schedule, n):
    check_schedule(schedule)
    data, poisoned = inputs(schedule, n)
    assert is_right(schedule, data, run(schedule, poisoned))


@settings(max_examples=300)
@given(schedules())
def test_a_rank_sends_one_message_per_step_and_receives_one(schedule):
    """What the alpha-beta model assumes."""
    for sends in schedule.by_step():
        assert sends, "a step in which nobody sends"
        assert max(Counter(send.source for send in sends).values()) == 1
        assert max(Counter(send.destination for send in sends).values()) == 1


# --- Mutations -----------------------------------------------------------------------------------------------------


def naive(schedule):
    """Whose data is where after the sends, counted in an other way than check_schedule's, with no rule checked."""
    ranks, slices = range(schedule.ranks), range(schedule.slices)
    held = [[Counter() for _ in slices] for _ in ranks]
    for rank in ranks:
        for i in slices:
            match schedule.collective:
                case "broadcast":
                    begins = rank == schedule.root
                case "all-gather":
                    begins = i in schedule.owned(rank)
                case _:
                    begins = True
            if begins:
                held[rank][i][rank] = 1
    for sends in schedule.by_step():
        read = [[held[send.source][i].copy() for i in send.slices] for send in sends]
        for send, carried in zip(sends, read, strict=True):
            for i, what in zip(send.slices, carried, strict=True):
                held[send.destination][i] = held[send.destination][i] + what if send.reduce else what
    return held


def keeps_its_promise(schedule):
    held, everybody = naive(schedule), Counter(range(schedule.ranks))
    for rank in range(schedule.ranks):
        for i in range(schedule.slices):
            match schedule.collective:
                case "broadcast":
                    good = held[rank][i] == Counter([schedule.root])
                case "all-gather":
                    good = held[rank][i] == Counter([i * schedule.ranks // schedule.slices])
                case "all-reduce":
                    good = held[rank][i] == everybody
                case "reduce":
                    good = rank != schedule.root or held[rank][i] == everybody
                case "reduce-scatter":
                    good = i not in schedule.owned(rank) or held[rank][i] == everybody
            if not good:
                return False
    return True


def replaced(schedule, at, *sends):
    return replace(schedule, sends=(*schedule.sends[:at], *sends, *schedule.sends[at + 1 :]))


MUTATIONS = {
    "drop": lambda schedule, at, other: replaced(schedule, at),
    "twice at once": lambda schedule, at, other: replaced(schedule, at, schedule.sends[at], schedule.sends[at]),
    "again later": lambda schedule, at, other: replaced(
        schedule, at, schedule.sends[at], replace(schedule.sends[at], step=schedule.steps)
    ),
    "reverse": lambda schedule, at, other: replaced(
        schedule,
        at,
        replace(schedule.sends[at], source=schedule.sends[at].destination, destination=schedule.sends[at].source),
    ),
    "earlier": lambda schedule, at, other: replaced(
        schedule, at, replace(schedule.sends[at], step=max(0, schedule.sends[at].step - 1 - other % 3))
    ),
    "later": lambda schedule, at, other: replaced(
        schedule, at, replace(schedule.sends[at], step=schedule.sends[at].step + 1 + other % 3)
    ),
    "swap steps": lambda schedule, at, other: replace(
        schedule,
        sends=(
            *(send for i, send in enumerate(schedule.sends) if i not in (at, other)),
            replace(schedule.sends[at], step=schedule.sends[other].step),
            replace(schedule.sends[other], step=schedule.sends[at].step),
        ),
    ),
    "other slice": lambda schedule, at, other: replaced(
        schedule, at, replace(schedule.sends[at], slice=other % (schedule.slices - schedule.sends[at].count + 1))
    ),
    "other reduce": lambda schedule, at, other: replaced(
        schedule, at, replace(schedule.sends[at], reduce=not schedule.sends[at].reduce)
    ),
    "other destination": lambda schedule, at, other: replaced(
        schedule, at, replace(schedule.sends[at], destination=other % schedule.ranks)
    ),
}


@settings(max_examples=1500)
@given(schedules(2, 5), st.sampled_from(sorted(MUTATIONS)), st.data())
def test_a_mutated_schedule_is_refused_or_right_all_the_same(schedule, kind, data):
    if not schedule.sends:
        return
    at, other = (data.draw(st.integers(0, len(schedule.sends) - 1)) for _ in range(2))
    mutant = MUTATIONS[kind](schedule, at, other if other != at else 0)
    try:
        check_schedule(mutant)
    except ScheduleError:
        return
    assert keeps_its_promise(mutant)
    full, poisoned = inputs(mutant, 3 * mutant.slices)
    assert is_right(mutant, full, run(mutant, poisoned))


@pytest.mark.parametrize("kind", ["drop", "twice at once"])
def test_no_send_of_a_generator_is_spare(kind):
    """Each schedule without any one of its sends, or with one of them doubled, is refused.

    But scatter and all-gather: its ring brings some ranks what they have passed on in the scatter.
    """
    for schedule in examples(6):
        if kind == "drop" and schedule == SPARE:
            continue
        for at in range(len(schedule.sends)):
            with pytest.raises(ScheduleError):
                check_schedule(MUTATIONS[kind](schedule, at, 0))


@pytest.mark.parametrize("kind", sorted(MUTATIONS))
def test_a_mutation_of_any_send_is_refused_or_right_all_the_same(kind):
    """Every send of some schedules in turn, so that no kind of mutation passes for want of examples."""
    refused = tried = 0
    for schedule in examples(4):
        for at in range(len(schedule.sends)):
            mutant = MUTATIONS[kind](schedule, at, (7 * at + 3) % len(schedule.sends))
            if mutant.sends == schedule.sends:
                continue
            tried += 1
            try:
                check_schedule(mutant)
            except ScheduleError:
                refused += 1
            else:
                assert keeps_its_promise(mutant)
    assert tried > 50
    assert refused > 0.3 * tried


SPARE = scatter_gather.scatter_all_gather_broadcast(6, 6, 1)


def examples(ranks):
    power = 4 if ranks < 8 else 8
    return [
        *(make(ranks, 3, 1) for make in ROOTED),
        *(make(ranks, ranks) for make in PARTS),
        *(make(power, power) for make in POWER_OF_TWO),
        scatter_gather.scatter_all_gather_broadcast(ranks, ranks, 1),
    ]


# --- What the docstrings promise ----------------------------------------------------------------------------------


def bytes_per_link(schedule):
    """Slices that cross each directed link, as a share of the buffer."""
    found = Counter()
    for send in schedule.sends:
        found[send.source, send.destination] += send.count
    return {link: count / schedule.slices for link, count in found.items()}


def bytes_sent(schedule):
    """What each rank sends, as a share of the buffer."""
    found = Counter()
    for send in schedule.sends:
        found[send.source] += send.count
    return {rank: count / schedule.slices for rank, count in found.items()}


@given(st.integers(2, 12), st.integers(1, 30), st.data())
def test_a_ring_broadcast_takes_exactly_s_plus_k_minus_2_steps(ranks, slices, data):
    root = data.draw(st.integers(0, ranks - 1))
    for make in (ring.ring_broadcast, ring.ring_reduce):
        schedule = make(ranks, slices, root)
        assert schedule.steps == slices + ranks - 2
        assert set(bytes_per_link(schedule).values()) == {1}
        assert len(bytes_per_link(schedule)) == ranks - 1


@given(st.integers(2, 12), st.integers(1, 4))
def test_rings_of_parts_send_the_least_possible(ranks, part):
    for make, times in ((ring.ring_reduce_scatter, 1), (ring.ring_all_gather, 1), (ring.ring_all_reduce, 2)):
        schedule = make(ranks, ranks * part)
        assert schedule.steps == times * (ranks - 1) * part
        assert len(bytes_per_link(schedule)) == ranks
        assert set(bytes_per_link(schedule).values()) == {times * (ranks - 1) / ranks}


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_halving_and_doubling_take_the_logarithm_of_k_steps(ranks):
    log = ranks.bit_length() - 1
    assert recursive.recursive_doubling_all_reduce(ranks).steps == log
    assert set(bytes_sent(recursive.recursive_doubling_all_reduce(ranks)).values()) == {log}
    for make, times in (
        (recursive.recursive_halving_reduce_scatter, 1),
        (recursive.recursive_doubling_all_gather, 1),
        (recursive.halving_doubling_all_reduce, 2),
    ):
        schedule = make(ranks, ranks)
        assert schedule.steps == times * log
        assert set(bytes_sent(schedule).values()) == {times * (ranks - 1) / ranks}


@pytest.mark.parametrize("ranks", range(2, 18))
def test_trees_take_what_they_promise(ranks):
    log = tree.depth(ranks)
    assert 2**log >= ranks > 2 ** (log - 1)
    assert tree.tree_broadcast(ranks, 3).steps == log
    alone = tree.binary_tree_broadcast(ranks, 1).steps
    assert alone <= 2 * log
    assert tree.binary_tree_broadcast(ranks, 9).steps == alone + 8 * min(2, ranks - 1)
    assert tree.tree_all_reduce(ranks, 1).steps <= 4 * log
    for slices in (2 * log + 2, 3 * log + 5):
        assert tree.tree_all_reduce(ranks, slices).steps == tree.all_reduce_period(
            ranks
        ) * slices + tree.all_reduce_latency(ranks)
    assert set(bytes_per_link(tree.tree_all_reduce(ranks, 4)).values()) == {1}
    assert max(bytes_sent(tree.tree_all_reduce(ranks, 4)).values()) == tree.all_reduce_period(ranks)


@given(st.integers(2, 12), st.integers(1, 3))
def test_scatter_and_all_gather_send_parts(ranks, part):
    schedule = scatter_gather.scatter_all_gather_broadcast(ranks, ranks * part, ranks - 1)
    assert schedule.steps == tree.depth(ranks) + (ranks - 1) * part
    root = sum(s.count for s in schedule.sends if s.source == ranks - 1 and s.step < tree.depth(ranks))
    assert root == (ranks - 1) * part


def test_an_order_is_a_ring():
    schedule = ring.ring_broadcast(4, 2, 2, [3, 2, 0, 1])
    assert sorted(bytes_per_link(schedule)) == [(0, 1), (1, 3), (2, 0)]


def test_rings_do_not_write_what_they_read_in_the_same_step():
    """So an engine may run the messages of a step without staging them."""
    for schedule in (ring.ring_broadcast(5, 7), *(make(5, 10) for make in PARTS)):
        for sends in schedule.by_step():
            read = {(send.source, i) for send in sends for i in send.slices}
            assert not read & {(send.destination, i) for send in sends for i in send.slices}


REFUSED = {
    "at least one rank and one slice, not 0 and 1": lambda: ring.ring_broadcast(0, 1),
    "at least one rank and one slice, not 2 and 0": lambda: tree.tree_broadcast(2, 0),
    "root 4 is no rank; ranks are 0 to 3": lambda: ring.ring_broadcast(4, 2, 4),
    "[0, 1, 2, 2] is no ring of 4 ranks; name each of 0 to 3 once": lambda: ring.ring_all_reduce(4, 4, [0, 1, 2, 2]),
    "needs a multiple of 4 slices, not 6; take 8": lambda: ring.ring_all_gather(4, 6),
    "needs a power of two of ranks, not 6; take a ring for 6": lambda: recursive.recursive_doubling_all_reduce(6),
}


@pytest.mark.parametrize("says", REFUSED)
def test_sizes_that_do_not_fit_are_refused(says):
    with pytest.raises(ValueError, match=re.escape(says)):
        REFUSED[says]()


def test_one_rank_has_nothing_to_send():
    for schedule in (ring.ring_broadcast(1, 3), ring.ring_all_reduce(1, 2), tree.tree_all_reduce(1, 2)):
        assert schedule == Schedule(schedule.collective, 1, schedule.slices, ())
        check_schedule(schedule)
