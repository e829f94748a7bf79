"""The checks of exercise 11: right answers of other kinds than the solution's pass, what is no answer is refused."""

import math

import numpy as np
import pytest

from kernels.serving.batch_checks import check_serving
from kernels.serving.operation_checks import Times, check_operations, least_time
from kernels.serving.ragged_checks import Lengths, check_ragged, drawn_lengths
from kernels.serving.serve.batching.batcher import Batcher, Limits
from tests.support.random_inputs import generator
from warplab import checks
from warplab.checks import CheckFailed
from warplab.launch.kernel_source import CudaSource

# -- batches of a server ---------------------------------------------------------------------------------------


def by_the_labs_batcher(arrivals, wait, most, service, room):
    """What becomes of the requests if the lab's own batcher decides."""
    batcher = Batcher(Limits(batch_limit=most, wait_limit=wait, capacity=room))
    came, free, batches, refused = 0, 0, [], []
    while came < len(arrivals) or len(batcher):
        due = batcher.due()
        begin = math.inf if due is None else max(free, int(due), arrivals[came - 1])
        if came < len(arrivals) and arrivals[came] <= begin:
            if not batcher.offer(came, arrivals[came]):
                refused.append(came)
            came += 1
            continue
        taken = batcher.take(begin)
        batches.append((begin, list(taken)))
        free = begin + service[len(taken) - 1]
    return batches, refused


def test_the_labs_own_batcher_keeps_the_rules_of_the_exercise():
    rng = generator()
    for _ in range(200):
        most = int(rng.integers(1, 7))
        arrivals = np.cumsum(rng.choice([0, 0, 1, 3, 9, 40], int(rng.integers(1, 50)))).tolist()
        service = np.cumsum(rng.integers(1, 30, most)).tolist()
        trace = (arrivals, int(rng.integers(1, 40)), most, service, most + int(rng.integers(0, 5)))
        check_serving("serve", by_the_labs_batcher(*trace), *trace)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        (None, "not written yet"),
        ([], "two lists"),
        (([(0, [0])], [], []), "two lists"),
        (({0: [0]}, []), "two lists"),
        (([(0, 0)], []), "batch 0 is not one"),
        (([(True, [0])], []), "batch 0 is not one"),
        (([(0.0, [0])], []), "batch 0 is not one"),
        (([(0, [])], []), "has no request"),
        (([(0, [0, 1, 2])], []), "has too many requests"),
        (([(0, [7])], []), "a request that does not exist"),
        (([(0, [-1])], []), "a request that does not exist"),
        (([(10, [0])], ["1"]), "a request that does not exist"),
        (([(10, [0])], []), "request 1 is lost"),
        (([(10, [0]), (20, [0])], [1]), "request 0 is answered twice"),
        (([(10, [0])], [1, 1]), "request 1 is refused twice"),
        (([(10, [0, 1])], [1]), "request 1 is refused, and answered all the same"),
        (([(20, [0]), (10, [1])], []), "begins before the one before it"),
        (([(10, [1]), (20, [0])], []), "has an older request than the one before it"),
        (([(10, [1, 0])], []), "is not in order"),
        (([(2, [0, 1])], []), "request 1, which is not there yet"),
        (([(3, [0, 1])], []), None),
        (([(4, [0, 1])], []), "begins too late"),
        (([(3, [0]), (8, [1])], []), "leaves requests waiting"),
        (([(1, [0]), (12, [1])], []), "begins too early"),
        (([(3, [0])], [1]), "request 1 is refused, although there is room"),
    ],
)
def test_what_breaks_a_rule_is_told(got, message):
    """Two requests, at 0 and 3 µs; a batch has two at most, waits 9 µs, and takes 5 µs."""
    trace = ([0, 3], 9, 2, [5, 5], 2)
    if message is None:
        return check_serving("serve", got, *trace)
    with pytest.raises(CheckFailed, match=message):
        check_serving("serve", got, *trace)


def test_the_engine_and_the_queue_are_looked_at():
    with pytest.raises(CheckFailed, match="begins while the engine is busy"):
        check_serving("serve", ([(0, [0]), (4, [1])], []), [0, 4], 0, 1, [5], 9)
    with pytest.raises(CheckFailed, match="request 2 is accepted, although the queue is full"):
        check_serving("serve", ([(0, [0]), (50, [1]), (100, [2])], []), [0, 1, 2], 0, 1, [50], 1)
    check_serving("serve", ([(0, [0]), (50, [1])], [2]), [0, 1, 2], 0, 1, [50], 1)


# -- stream operations -----------------------------------------------------------------------------------------


def by_stage(chunks, buffers):
    """A stream for each stage, an event for each chunk and stage."""
    found = [("weights", 0)]
    for chunk in range(chunks):
        at = chunk % buffers
        found += [("wait", 0, 1000 + chunk - buffers), ("in", 0, chunk, at), ("record", 0, f"in {chunk}")]
        found += [("wait", 1, f"in {chunk}"), ("kernel", 1, chunk, at), ("record", 1, f"kernel {chunk}")]
        found += [("wait", 2, f"kernel {chunk}"), ("out", 2, chunk, at), ("record", 2, 1000 + chunk)]
    return found


def breadth_first(chunks, buffers):
    """A stream per buffer; the host issues a stage of a round of buffers at a time."""
    found = [("weights", 0), ("record", 0, 0), *(("wait", stream, 0) for stream in range(1, buffers))]
    for first in range(0, chunks, buffers):
        for what in ("in", "kernel", "out"):
            found += [(what, i - first, i, i - first) for i in range(first, min(first + buffers, chunks))]
    return found


def weights_second(chunks, buffers):
    """The first copy of each stream may come before the weights, which have a stream of their own."""
    found = [("in", 0, 0, 0), ("weights", 99), ("record", 99, "w")]
    for chunk in range(chunks):
        at = chunk % buffers
        found += [("in", at, chunk, at)] if chunk else []
        found += [("wait", at, "w"), ("kernel", at, chunk, at), ("out", at, chunk, at)]
    return found


@pytest.mark.parametrize("write", [by_stage, breadth_first, weights_second])
def test_other_schedules_pass(write):
    rng = generator()
    for chunks, buffers in [(1, 1), (5, 1), (4, 2), (7, 3), (12, 5), (4, 9)]:
        check_operations("it", write(chunks, buffers), chunks, buffers, Times.equal(chunks))
        check_operations("it", write(chunks, buffers), chunks, buffers, Times.drawn(rng, chunks))


def test_the_time_allowed_is_that_of_a_pipeline():
    assert least_time(Times.equal(4), 3) == 1 + 4 + 2  # weights, copies in, and the last kernel and copy out
    assert least_time(Times.equal(4), 1) == 1 + 4 * 3
    assert least_time(Times.equal(4), 2) == 1 + 3 + 1 + 3  # two chunks, and two more when their buffers are free


@pytest.mark.parametrize(
    ("got", "message"),
    [
        (None, "not written yet"),
        ({}, "returns the wrong type"),
        ([], "an empty list"),
        ([("copy", 0)], "operation 0 is not one"),
        ([("weights",)], "operation 0 is not one"),
        ([("weights", "a")], "operation 0 is not one"),
        ([("weights", -1)], "operation 0 is not one"),
        ([("record", 0, 1.5)], "operation 0 is not one"),
        ([("in", 0, True, 0)], "operation 0 is not one"),
        ([("in", 0, 2, 0)], "names a chunk that does not exist"),
        ([("in", 0, 0, 1)], "names a buffer that does not exist"),
        (by_stage(2, 1)[1:], "the copy of the weights is missing"),
        ([*by_stage(2, 1), ("in", 0, 0, 0)], "the copy in of chunk 0 is there more than once"),
        ([("kernel", 0, 0, 0), *(x for x in by_stage(2, 1) if x != ("kernel", 1, 0, 0))], "is issued before"),
        ([x for x in by_stage(2, 1) if x[:2] != ("wait", 0)], "race on buffer 0"),
        ([x for x in by_stage(2, 1) if x[0] != "weights"] + [("weights", 5)], "race on the weights"),
    ],
)
def test_what_is_no_schedule_is_told(got, message):
    with pytest.raises(CheckFailed, match=message):
        check_operations("it", got, 2, 1, Times.equal(2))


def test_a_buffer_that_is_overwritten_in_order_is_told():
    one_stream = [("weights", 0), ("in", 0, 0, 0), ("in", 0, 1, 0), ("kernel", 0, 1, 0), ("out", 0, 1, 0)]
    with pytest.raises(CheckFailed, match="overwrites chunk 0 in buffer 0"):
        check_operations("it", [*one_stream, ("kernel", 0, 0, 0), ("out", 0, 0, 0)], 2, 1, Times.equal(2))
    other = [("weights", 0), ("in", 0, 0, 0), ("kernel", 0, 0, 1), ("out", 0, 0, 0)]
    with pytest.raises(CheckFailed, match="the kernel of chunk 0 finds something else in buffer 1"):
        check_operations("it", other, 1, 2, Times.equal(1))


STAGES = {"in": 0, "kernel": 1, "out": 2}


def test_stages_lie_in_their_streams_and_the_weights_in_any_of_them():
    for weights in (0, 1):
        got = [("weights", weights), *by_stage(4, 2)[1:]]
        check_operations("it", got, 4, 2, Times.equal(4), streams=STAGES)
    with pytest.raises(CheckFailed, match=r"other streams than those(.|\n)*99 as well"):
        check_operations("it", weights_second(4, 2), 4, 2, Times.equal(4), streams=STAGES)
    with pytest.raises(CheckFailed, match=r"the copy in of chunk 1 is in the wrong stream(.|\n)*stream 0"):
        check_operations("it", breadth_first(4, 2), 4, 2, Times.equal(4), streams=STAGES)


def test_a_number_and_its_digits_are_two_events():
    def waits_for(event):
        one = [("weights", 0), ("record", 0, "3"), ("wait", 1, event), ("in", 1, 0, 0)]
        return [*one, ("kernel", 1, 0, 0), ("out", 1, 0, 0)]

    check_operations("it", waits_for("3"), 1, 1, Times.equal(1))
    with pytest.raises(CheckFailed, match="race on the weights"):
        check_operations("it", waits_for(3), 1, 1, Times.equal(1))


# -- kernels on a ragged batch ---------------------------------------------------------------------------------

SHUFFLES = CudaSource(
    """
extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    __shared__ float sums[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        const float* mine = x + first[request];
        int n = first[request + 1] - first[request];
        double sum = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            sum += mine[i];
        for (int apart = 16; apart; apart /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, apart);
        if (lane == 0)
            sums[warp] = sum;
        __syncthreads();
        float all = lane < blockDim.x / 32 ? sums[lane] : 0;
        for (int apart = 16; apart; apart /= 2)
            all += __shfl_xor_sync(0xffffffffu, all, apart);
        for (int i = threadIdx.x; i < n; i += blockDim.x)
            y[first[request] + i] = mine[i] - all * (1.0f / n);
        __syncthreads();
    }
}
""",
    "centre",
    file="shuffles.cu",
)


def centred(rng, lengths):
    x, first = checks.summable(rng, sum(lengths)), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    clips = [clip - np.mean(clip) if clip.size else clip for clip in np.split(x, first[1:-1])]
    given = {"x": x, "first": first, "y": None, "requests": np.int32(len(lengths))}
    return checks.Case(given, {"y": np.concatenate(clips).astype(np.float32)})


def test_a_kernel_that_adds_by_shuffles_passes(capsys):
    launches = [(3, 32), (1, 1024), (7, 64), (20, 256)]
    batches = [Lengths((130, 5, 64, 0, 257, 33, 1, 90)), drawn_lengths(generator(), 15, 300)]
    check_ragged(SHUFFLES, centred, batches, launches, language="CUDA C++", atol=5e-5)
    assert capsys.readouterr().out.count("right for 2 batches with 4 launch shapes") == 1


def test_a_failure_names_each_request():
    wrong = CudaSource(SHUFFLES.code.replace("lane == 0", "lane == 1"), "centre", file="wrong.cu")
    with pytest.raises(CheckFailed, match="request 0 = 40, request 1 = 7, 2 blocks of 64 threads"):
        check_ragged(wrong, centred, [Lengths((40, 7))], [(2, 64)], atol=5e-5)


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ("threadIdx.x % 2", "the warp efficiency is too low"),
        ("threadIdx.x / 32 % 2", r"do not share the loads and stores(.|\n)*threads in turn, with a barrier between"),
    ],
)
def test_threads_that_load_in_turns_are_told(turns, message):
    load = "for (int i = threadIdx.x; i < n; i += blockDim.x)\n            sum += mine[i];"
    in_turns = f"for (int t = 0; t < 2; t++) {{ if (t == {turns}) {load} __syncthreads(); }}"
    code = SHUFFLES.code.replace(load, in_turns)
    assert code != SHUFFLES.code
    with pytest.raises(CheckFailed, match=message):
        check_ragged(CudaSource(code, "centre", file="turns.cu"), centred, [Lengths((40, 7))], [(2, 64)], atol=5e-5)
