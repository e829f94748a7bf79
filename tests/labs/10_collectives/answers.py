"""Right and wrong answers to the tasks of lesson 10's first notebook ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

STEPS = "steps(ranks, slices)"
ONE_SLICE = "one_slice(order, slice)"
SCATTER = "slice_to_send(rank, step, k)"
NOT_THREAD_0 = "if (threadIdx.x) __threadfence_system();"


def alpha(result: str = "t1 - C / s1", c: str = "(t1 - t2) / (1 / s1 - 1 / s2)") -> str:
    return dedent(
        f"""\
        def alpha(first, second):
            (s1, t1), (s2, t2) = first, second
            C = {c}
            return {result}"""
    )


def one_slice(message: str, hops: str = "range(len(order) - 1)") -> str:
    return one_line(ONE_SLICE, f"[{message} for hop in {hops}]")


def one_step(read: str = "arrays", held: str = "[array.copy() for array in arrays]", result: str = "held") -> str:
    return dedent(
        f"""\
        def one_step(messages, arrays):
            held = {held}
            for source, destination in messages:
                held[destination] += {read}[source]
            return {result}"""
    )


def add_peer(elements: str = "range(cuda.grid(1), own.size, cuda.gridsize(1))", body: str = "own[i] += peer[i]") -> str:
    return dedent(
        f"""\
        @cuda.jit
        def add_peer(own, peer):
            for i in {elements}:
                {body}"""
    )


def pass_on(
    wait: str = "while (*arrived == 0);",
    after: str = "__threadfence_system();",
    barrier: str = "__syncthreads();",
    loop: str = "int i = threadIdx.x; i < n; i += blockDim.x",
    done: str = "__syncthreads();",
    before: str = "__threadfence_system();",
) -> str:
    return dedent(
        f"""\
        %%cuda
        extern "C" __global__ void pass_on(const float *mine, float *next, const volatile unsigned *arrived,
                                           volatile unsigned *passed, int n, int slices) {{
            if (threadIdx.x == 0) {{ {wait} {after} }}
            {barrier}
            for ({loop}) next[i] = mine[i];
            {done}
            if (threadIdx.x == 0) {{ {before} *passed = 1; }}
        }}"""
    )


ANSWERS = {
    "your-turn-steps": Answers(
        one_line(STEPS, "slices + ranks - 2"),
        {
            one_line(STEPS, "slices + ranks - 1"): "steps returns the wrong value",
            one_line(STEPS, "slices * (ranks - 1)"): "steps returns the wrong value",
            one_line(STEPS, "slices + ranks"): "steps returns the wrong value",
            one_line(STEPS, "max(slices, ranks - 1)"): "steps returns the wrong value",
        },
    ),
    "your-turn-alpha": Answers(
        alpha(),
        {
            alpha("C"): "alpha returns the wrong value",
            alpha("t1 + C / s1"): "alpha returns the wrong value",
            alpha("t1 - C * s1"): "alpha returns the wrong value",
            alpha(c="(t1 - t2) / (s1 - s2)"): "alpha returns the wrong value",
            one_line("alpha(first, second)", "min(first[1], second[1])"): "alpha returns the wrong value",
        },
    ),
    "your-turn-one-slice": Answers(
        one_slice("(slice + hop, order[hop], order[hop + 1], slice)"),
        {
            one_slice("(hop, order[hop], order[hop + 1], slice)"): "already carries slice",
            one_slice("(slice, order[hop], order[hop + 1], slice)"): "does not hold slice 0 when the step begins",
            one_slice("(slice + hop, hop, hop + 1, slice)"): "there is no link from rank",
            one_slice("(slice * (len(order) - 1) + hop, order[hop], order[hop + 1], slice)"): "too many steps",
            one_slice(
                "(slice + hop, order[hop], order[(hop + 1) % len(order)], slice)", "range(len(order))"
            ): "too many",
            one_slice(
                "(slice + hop, order[hop], order[hop + 1], slice)", "range(len(order) - 2)"
            ): "lacks the data of rank 0",
            one_slice("(slice + hop, order[hop], order[hop + 1])"): "message 0 is not one",
            one_slice("(slice + hop, order[hop], order[hop + 1], slice)", "range(len(order))"): "raises IndexError",
        },
    ),
    "your-turn-scatter": Answers(
        one_line(SCATTER, "(rank - step - 1) % k"),
        {
            one_line(SCATTER, "(rank - step) % k"): "slice 0 is complete at rank 3, not at rank 0",
            one_line(SCATTER, "(rank + step) % k"): "does not send on what it has just received",
            one_line(SCATTER, "rank"): "does not send on what it has just received",
            one_line(SCATTER, "rank - step - 1"): "names a slice that does not exist",
            one_line(SCATTER, "(rank + step + 1) % k"): "does not send on what it has just received",
            one_line(SCATTER, "(rank + 1 - step) % k"): "slice 0 is complete at rank",
        },
    ),
    "your-turn-one-step": Answers(
        one_step(),
        {
            one_step(read="held"): "the array of rank",
            one_step(held="arrays"): "is wrong",
            one_step(held="list(arrays)"): "is wrong",
            one_step(
                held="[a.copy() if any(i == to for _, to in messages) else a for i, a in enumerate(arrays)]"
            ): "an array that it was given",
            one_step(result="arrays"): "the array of rank 1 is wrong",
            one_step().replace("held[destination] +=", "held[destination] = arrays[destination] +"): "rank 2 is wrong",
            one_step(result="held[0]"): "returns the wrong type",
        },
        shows="after partners at distance 4 [11111111, 11111111",
    ),
    "your-turn-add": Answers(
        add_peer(),
        {
            add_peer("range(own.size)"): "has a data race",
            add_peer("range(cuda.grid(1), own.size, 1)"): "has a data race",
            add_peer("range(cuda.threadIdx.x, own.size, cuda.blockDim.x)"): "has a data race",
            add_peer("range(own.size if cuda.grid(1) == 0 else 0)"): "one thread does too much of the work",
            add_peer(body="own[i] = peer[i]"): "own is wrong",
            add_peer(body="peer[i] += own[i]"): "the input peer was modified",
            add_peer("range(cuda.grid(1), cuda.grid(1) + 1)"): "elements from 32 on still have the value",
            add_peer("range(cuda.grid(1), own.size, cuda.blockDim.x)"): "own is wrong in",
            add_peer(
                "range(cuda.grid(1) * (-(-own.size // cuda.gridsize(1))), "
                "min(own.size, (cuda.grid(1) + 1) * (-(-own.size // cuda.gridsize(1)))))"
            ): "too many sectors",
        },
    ),
    "your-turn-pass-on": Answers(
        pass_on(),
        {
            pass_on(before=""): "no fence before the flag",
            pass_on(after=""): "no fence after the wait",
            pass_on(before="__threadfence();"): "narrow fence",
            pass_on(after="__threadfence();"): "narrow fence",
            pass_on(wait=""): "no wait",
            pass_on(done=f"{NOT_THREAD_0} __syncthreads();", before=""): "no fence before the flag",
            pass_on(
                after="",
                barrier=f"__syncthreads(); {NOT_THREAD_0} __syncthreads();",
                done=f"__syncthreads(); {NOT_THREAD_0}",
                before="",
            ): "no fence before the flag",
            pass_on(barrier=""): "no barrier",
            pass_on(done=""): "no barrier",
            pass_on(loop="int i = threadIdx.x; i < 32; i += blockDim.x"): "is wrong in",
            pass_on(wait="while (*arrived != 2);"): "waits for ever",
            pass_on(wait="for (int t = 0; t < 100 && *arrived == 0; t++);"): "has a race between devices",
            pass_on(loop="int i = 0; threadIdx.x == 0 && i < n; i++"): "one thread does too much of the work",
        },
        shows="[0. 1. 2. 3. 4.]",
    ),
}
