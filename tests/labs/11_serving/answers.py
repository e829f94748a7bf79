"""Right and wrong answers to the tasks of lesson 11 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

ACTIVITY = "sm_activity(kernels, period, sms)"
SUM = "sum((end - begin) * min(blocks, sms) for begin, end, blocks in kernels)"
WAIT = "wait(load, service)"
FLUSH = "flush(waiting, waited, batch_limit, wait_limit)"


def util(new: str = "max(0, end - max(begin, free))", free: str = "max(free, end)") -> str:
    return dedent(
        f"""\
        def util(kernels, period):
            busy = free = 0
            for begin, end in kernels:
                busy += {new}
                free = {free}
            return busy / period"""
    )


def spin(body: str) -> str:
    return f"%%cuda\n__global__ void spin(long long clocks) {{\n    long long start = clock64();\n    {body}\n}}"


def road(least: str = "0.6", neither: str = "max(memory, instructions)", larger: str = "memory >= instructions") -> str:
    return dedent(
        f"""\
        def road(memory, instructions):
            if {neither} < {least}:
                return "latency"
            return "memory" if {larger} else "instructions"
        """
    )


def overlapped(stream: str = "i", back: str = 's.d2h(f"y{i}", i, ms=1)', read: str = 'f"x{i}"') -> str:
    return dedent(
        f"""\
        def overlapped(chunks):
            s = Schedule()
            for i in range(chunks):
                s.h2d(f"x{{i}}", {stream}, ms=1)
                s.kernel(f"run {{i}}", {stream}, ms=1, reads={read}, writes=f"y{{i}}")
                {back}
            return s"""
    )


def back(stream: str, name: str = 'f"y{i}"') -> str:
    return f"s.d2h({name}, {stream}, ms=1)"


def hand_over(*calls: str) -> str:
    return "\n    ".join(["def hand_over(s, i):", *calls])


def planes(
    index: str = "x, y = cuda.grid(2)", guard: str = "x < out.shape[2] and y < out.shape[1]", body: str = ""
) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def planes(frame, scale, out):
            {index}
            if {guard}:
                for c in range(3):
                    {body or "out[c, y, x] = frame[y, x, c] * scale"}
        """
    )


def sharing(in_turns: str = "min(n, 1 / busy)", together: str = "min(n, 1 / (busy * fill))") -> str:
    return "\n\n\n".join((one_line("in_turns(n, busy)", in_turns), one_line("together(n, busy, fill)", together)))


def latencies(free: str = "max(free, arrival) + service", found: str = "free - arrival") -> str:
    return dedent(
        f"""\
        def latencies(arrivals, services):
            free, found = 0.0, []
            for arrival, service in zip(arrivals, services):
                free = {free}
                found.append({found})
            return found"""
    )


ANSWERS = {
    "your-turn-util": Answers(
        util(),
        {
            util("end - begin"): "util returns the wrong value",
            util("max(0, end - max(begin, free))", "end"): "util returns the wrong value",
            util("end - max(begin, free)"): "util returns the wrong value",
            one_line(
                "util(kernels, period)", "(kernels[-1][1] - kernels[0][0]) / period if kernels else 0"
            ): "wrong value",
        },
    ),
    "your-turn-activity": Answers(
        one_line(ACTIVITY, f"{SUM} / (period * sms)"),
        {
            one_line(ACTIVITY, f"{SUM} / period"): "sm_activity returns the wrong value",
            one_line(
                ACTIVITY, f"{SUM.replace('min(blocks, sms)', 'blocks')} / (period * sms)"
            ): "sm_activity returns the wrong value",
            one_line(
                ACTIVITY, f"{SUM.replace(' * min(blocks, sms)', '')} / period"
            ): "sm_activity returns the wrong value",
        },
    ),
    "your-turn-spin": Answers(
        spin("while (clock64() - start < clocks);"),
        {
            spin("while (clock64() - start > clocks);"): "spin ends too early",
            spin("for (long long i = 0; i < clocks; i++);"): "removes a loop that changes nothing",
            spin("long long now = start; while (now - start < clocks);"): "spin does not end",
            spin("while (clock64() - start < 10 * clocks);"): "spin waits too long",
            spin("while (clock64() < clocks);"): "spin ends too early",
        },
    ),
    "your-turn-road": Answers(
        road(),
        {
            road(least="0.5"): "road returns the wrong word",
            road(neither="min(memory, instructions)"): "road returns the wrong word",
            road(larger="instructions >= memory"): "road returns the wrong word",
            road(neither="memory"): "road returns the wrong word",
            one_line(
                "road(memory, instructions)", "max(memory, instructions)"
            ): "something else than a word of the three",
        },
    ),
    "your-turn-overlapped": Answers(
        overlapped(),
        {
            overlapped("0", back("0")): "what could overlap does not",
            overlapped("i % 2", back("i % 2")): "what could overlap does not",
            overlapped(back=back('"back"')): "leaves a race",
            overlapped(back="pass"): "does not issue each copy and each kernel once",
            overlapped(back=back("i", 'f"x{i}"')): "does not issue each copy and each kernel once",
            overlapped(read='"x0"'): "works on other buffers",
            overlapped(back=back("i").replace("ms=1", "ms=0.5")): "shall take one unit of time",
        },
    ),
    "your-turn-hand-over": Answers(
        hand_over('s.record(f"x{i}", "copy")', 's.wait(f"x{i}", "run")'),
        {
            hand_over('s.wait(f"x{i}", "run")', 's.record(f"x{i}", "copy")'): "had recorded that event yet",
            hand_over('s.record(f"x{i}", "copy")'): "hand_over leaves a race",
            hand_over('s.record(f"x{i}", "run")', 's.wait(f"x{i}", "copy")'): "hand_over leaves a race",
            hand_over('s.synchronize(stream="copy")'): "keeps the host waiting",
            hand_over('s.synchronize("copy")'): "hand_over raises TypeError",
            hand_over('s.record("copy")', 's.wait("run")'): "hand_over uses a third stream",
        },
    ),
    "your-turn-planes": Answers(
        planes(),
        {
            planes(guard="x >= 0"): "the guard: what a thread does",
            planes(index="y, x = cuda.grid(2)"): "never written",
            planes(body="out[c, y, x] = frame[y, x, 2 - c] * scale"): "out is wrong",
            planes(body="out[c, y, x] = frame[y, x, c]"): "out is wrong",
            planes(body="out[0, y, x] = frame[y, x, 0] * scale"): "never written",
            planes(
                "first = cuda.grid(1)",
                "first == 0",
                "for y in range(out.shape[1]):\n"
                "                        for x in range(out.shape[2]):\n"
                "                            out[c, y, x] = frame[y, x, c] * scale",
            ): "one thread does too much of the work",
        },
    ),
    "your-turn-sharing": Answers(
        sharing(),
        {
            sharing(in_turns="n"): "in_turns returns the wrong value",
            sharing(in_turns="min(n, busy)"): "in_turns returns the wrong value",
            sharing(together="min(n, 1 / fill)"): "together returns the wrong value",
            sharing(together="n"): "together returns the wrong value",
            sharing(together="min(n, 1 / busy / fill, 7)"): "together returns the wrong value",
        },
    ),
    "your-turn-wait": Answers(
        one_line(WAIT, "load / (1 - load) * service / 2"),
        {
            one_line(WAIT, "load / (1 - load) * service"): "2 times the right one",
            one_line(WAIT, "load / (1 - load) / 2"): "wait returns the wrong value",
            one_line(WAIT, "load * service / 2"): "wait returns the wrong value",
            one_line(WAIT, "service + load / (1 - load) * service / 2"): "wait returns the wrong value",
        },
    ),
    "your-turn-flush": Answers(
        one_line(FLUSH, "waiting >= batch_limit or waited >= wait_limit"),
        {
            one_line(FLUSH, "waiting >= batch_limit and waited >= wait_limit"): "flush returns the wrong value",
            one_line(FLUSH, "waiting > batch_limit or waited >= wait_limit"): "flush returns the wrong value",
            one_line(FLUSH, "waiting >= batch_limit"): "flush returns the wrong value",
            one_line(FLUSH, "waited >= wait_limit"): "flush returns the wrong value",
            one_line(FLUSH, "True"): "flush returns the wrong value",
            one_line(FLUSH, "int(waited >= wait_limit)"): "True or False",
        },
    ),
    "your-turn-latencies": Answers(
        latencies(),
        {
            latencies(free="free + service"): "the latency of request 1 is wrong",
            latencies(found="service"): "the latency of request",
            latencies(found="free"): "the latency of request",
            latencies(found="free - service - arrival"): "the latency of request",
            latencies().replace("return found", "return free"): "returns the wrong type",
        },
    ),
}
