"""The checks of exercise 10: right answers of other kinds than the solution's pass, and each limit is the tight one."""

import pytest

from kernels.collectives import forward_checks
from kernels.collectives.answer_checks import check_messages, check_never_go_on, check_programs, in_rounds, ring_links
from kernels.collectives.forward_checks import Ring, check_forward
from kernels.collectives.programs import ProgramLine
from kernels.collectives.ring import ring_all_reduce, ring_broadcast, ring_reduce_scatter
from tests.support.random_inputs import generator
from warplab import cp
from warplab.checks import CheckFailed
from warplab.launch.kernel_source import CudaSource

RINGS = ([0, 1], [1, 2, 0], [0, 2, 1, 3], [4, 2, 0, 1, 3], [7, 6, 5, 4, 3, 2, 1, 0])


def tuples(schedule, with_add=False):
    """The messages of a schedule as a learner writes them, in a drawn order."""
    found = [(s.step, s.source, s.destination, s.slice, *([s.reduce] if with_add else [])) for s in schedule.sends]
    generator().shuffle(found)
    return [tuple(bool(x) if i == 4 else int(x) for i, x in enumerate(message)) for message in found]


@pytest.mark.parametrize("ring", RINGS)
def test_the_labs_own_schedules_pass_and_need_every_step_allowed(ring):
    k = len(ring)
    for slices in (1, 3, 8):
        sends = tuples(ring_broadcast(k, slices, root=ring[-1], order=ring))
        check_messages("broadcast", sends, "broadcast", ring, slices, ring[-1], steps=slices + k - 2)
        late = [(step + 1, *rest) for step, *rest in sends]
        with pytest.raises(CheckFailed, match="too many steps"):
            check_messages("broadcast", late, "broadcast", ring, slices, ring[-1], steps=slices + k - 2)
    sends = tuples(ring_reduce_scatter(k, 2 * k, order=ring))
    check_messages("reduce_scatter", sends, "reduce-scatter", ring, 2 * k, steps=2 * (k - 1))
    sends = tuples(ring_all_reduce(k, 2 * k, order=ring), with_add=True)
    check_messages("all_reduce", sends, "all-reduce", ring, 2 * k, steps=4 * (k - 1))


@pytest.mark.parametrize(
    ("got", "message"),
    [
        (None, "not written yet"),
        ("0 1", "returns the wrong type"),
        ([], "an empty list"),
        ([(0, 0, 1)], "message 0 is not one"),
        ([(0, 0, 1, 0, True)], "message 0 is not one"),
        ([(0.0, 0, 1, 0)], "message 0 is not one"),
        ([(True, 0, 1, 0)], "message 0 is not one"),
        ([(0, 0, 3, 0)], "names a rank that does not exist"),
        ([(0, 0, 1, -1)], "names a slice that does not exist"),
        ([(-1, 0, 1, 0)], "a step before the first"),
        ([(10**12, 0, 1, 0)], "too late a step"),
        ([(0, 0, 0, 0)], "a rank sends to another rank|no link"),
        ([(0, 0, 2, 0)], "no link from rank 0 to rank 2"),
    ],
)
def test_what_is_no_schedule_is_refused(got, message):
    with pytest.raises(CheckFailed, match=message):
        check_messages("broadcast", got, "broadcast", [0, 1, 2], 1, 0, steps=2)


def test_no_failure_shows_what_to_do_about_a_deadlock():
    with pytest.raises(CheckFailed, match="rank 0 waits for rank 1 waits for rank 0") as failed:
        check_programs(
            "programs",
            [[("send", 1, 1), ("receive", 1, 0)], [("send", 0, 0), ("receive", 0, 1)]],
            "reduce-scatter",
            [0, 1],
            2,
            rounds=2,
        )
    assert "let one rank" not in str(failed.value)


@pytest.mark.parametrize("receives_first", [0, 1])
@pytest.mark.parametrize("ring", RINGS)
def test_either_half_may_begin_with_the_receives(ring, receives_first):
    k = len(ring)
    programs = [[] for _ in ring]
    for step in range(k - 1):
        for place, rank in enumerate(ring):
            both = [
                ("send", ring[(place + 1) % k], ring[(place - step - 1) % k]),
                ("receive", ring[place - 1], ring[(place - step - 2) % k]),
            ]
            programs[rank] += both[::-1] if place % 2 == receives_first else both
    least = 2 * (k - 1 + k % 2)
    check_programs("programs", programs, "reduce-scatter", ring, k, rounds=least)
    with pytest.raises(CheckFailed, match="too many rounds"):
        check_programs("programs", programs, "reduce-scatter", ring, k, rounds=least - 1)


def test_a_message_is_sent_when_both_have_come_to_it():
    programs = [
        [ProgramLine("send", 1, 0), ProgramLine("send", 2, 1)],
        [ProgramLine("receive", 2, 2), ProgramLine("receive", 0, 0)],
        [ProgramLine("send", 1, 2), ProgramLine("receive", 0, 1)],
    ]
    assert [(s.step, s.source, s.destination) for s in in_rounds(programs)] == [(0, 2, 1), (1, 0, 1), (2, 0, 2)]
    assert ring_links([0, 2, 1]) == {(0, 2), (2, 1), (1, 0)}


# -- forwarding kernels ------------------------------------------------------------------------------------------------

KERNEL = """
#include <cuda/atomic>

extern "C" __global__ void forward(
    const float* mine, float* next, const volatile unsigned* arrived, volatile unsigned* passed, int n, int slices)
{
    for (int s = 0; s < slices; s++) {
        int first = (long long)s * n / slices, last = (long long)(s + 1) * n / slices;
        int flag = s * gridDim.x + blockIdx.x;
        %s
        for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x)
            next[i] = mine[i];
        %s
    }
}
"""
WAITS = {
    "one thread": "if (threadIdx.x == 0) { while (!arrived[flag]); __threadfence_system(); } __syncthreads();",
    "all threads": "while (!arrived[flag]); __threadfence_system();",
    # membar.sys is fence.sc.sys, and such fences have one order: what comes after any of these comes after the flag's.
    "all fence": "if (threadIdx.x == 0) while (!arrived[flag]); __syncthreads(); __threadfence_system();",
    "acquire": """if (threadIdx.x == 0) { unsigned seen; do
            asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived + flag) : "memory");
        while (!seen); } __syncthreads();""",
    "atomic_ref": """if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_system> seen(*(unsigned*)(arrived + flag));
        while (!seen.load(cuda::memory_order_acquire)); } __syncthreads();""",
}
SETS = {
    "one thread": "__syncthreads(); if (threadIdx.x == 0) { __threadfence_system(); passed[flag] = 1; }",
    "all fence": "__threadfence_system(); __syncthreads(); if (threadIdx.x == 0) passed[flag] = 1;",
    "release": """__syncthreads(); if (threadIdx.x == 0)
        asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(passed + flag), "r"(1) : "memory");""",
    "atomic_ref": """__syncthreads(); if (threadIdx.x == 0)
        cuda::atomic_ref<unsigned, cuda::thread_scope_system>(*(unsigned*)(passed + flag))
            .store(1u, cuda::memory_order_release);""",
    "atomic": """__syncthreads(); if (threadIdx.x == 0) {
        __threadfence_system(); atomicExch_system((unsigned*)passed + flag, 1u); }""",
}
SOME = [Ring((2, 0, 1), 150, 3), Ring((1, 0, 2), 99, 2, gated=True)]


def forwarding(wait, sets):
    return cp.RawModule(code=KERNEL % (wait, sets)).get_function("forward")


@pytest.mark.parametrize(
    ("wait", "sets"),
    [*((wait, "one thread") for wait in WAITS), *(("one thread", sets) for sets in SETS), ("acquire", "release")],
)
def test_other_right_ways_to_order_data_and_flag_pass(wait, sets):
    check_forward(forwarding(WAITS[wait], SETS[sets]), SOME, [(1, 32), (2, 64)], language="CUDA C++")


def test_a_device_reaches_only_the_next_one(monkeypatch):
    """A star: each device copies from the root, whose data lies there from the beginning, and waits for nobody."""
    made, ring = [], [Ring((2, 0, 1), 150, 3)]
    make = forward_checks._Banded

    def noted(device, values):
        made.append(make(device, values))
        return made[-1]

    monkeypatch.setattr(forward_checks, "_Banded", noted)
    check_forward(forwarding(WAITS["one thread"], SETS["one thread"]), ring, [(1, 32)])
    root = made[0].view.data.ptr
    star = KERNEL.replace("next[i] = mine[i];", f"next[i] = s < 0 ? mine[i] : ((const float*)({root}ull))[i];")
    star = cp.RawModule(code=star % ("", SETS["one thread"])).get_function("forward")
    with pytest.raises(CheckFailed, match="memory of a device that is neither its own nor the next") as failed:
        check_forward(star, ring, [(1, 32)])
    assert failed.value.kind == "outside"
    monkeypatch.setattr(forward_checks, "_neighbours", lambda ring: True)
    check_forward(star, ring, [(1, 32)])  # nothing else would tell


def test_a_race_is_told_without_its_cure():
    with pytest.raises(CheckFailed, match="race between devices: narrow fence") as failed:
        check_forward(forwarding(WAITS["one thread"].replace("_system", ""), SETS["one thread"]), SOME, [(1, 32)])
    assert failed.value.kind == "race"
    assert "_system" not in str(failed.value)
    assert "devices = (2, 0, 1), n = 150, slices = 3" in str(failed.value)
    assert failed.value.line.endswith("next[i] = mine[i];")


def test_what_is_no_kernel_in_cuda_is_refused():
    with pytest.raises(CheckFailed, match="not a kernel"):
        check_forward(3, SOME, [(1, 32)])
    broken = CudaSource(KERNEL % ("oops", ""), "forward")
    with pytest.raises(CheckFailed, match="does not compile"):
        check_forward(broken, SOME, [(1, 32)])


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([0, 1], r"leaves out rank 2"),
        ([], r"leaves out rank 0"),
        ([0, 1, 2, 3], r"names rank 3, which goes on"),
        ([0, 1, 1, 2], r"names a rank twice"),
        ({0, 1, 2}, r"wrong type"),
        (None, r"returns nothing"),
        ([1, 0, 2], r"part 0 is wrong"),
    ],
)
def test_which_ranks_never_go_on_is_told_one_by_one(got, message):
    with pytest.raises(CheckFailed, match=message) as caught:
        check_never_go_on(got, [0, 1, 2], [1, 0, 0, None])
    assert " of 3" not in str(caught.value)  # how many they are would give them away


def test_the_ranks_that_never_go_on_are_accepted():
    check_never_go_on((0, 1, 2), [0, 1, 2], [1, 0, 0, None])
    check_never_go_on([], [], [None])
