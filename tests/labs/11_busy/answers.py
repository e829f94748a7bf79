"""Right and wrong answers to the tasks of lesson 11's first notebook ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

ACTIVITY = "sm_activity(kernels, period, sms)"
SUM = "sum((end - begin) * min(blocks, sms) for begin, end, blocks in kernels)"


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


ANSWERS = {
    "your-turn-util": Answers(
        util(),
        {
            util("end - begin"): "util returns the wrong value",
            util("max(0, end - max(begin, free))", "end"): "util returns the wrong value",
            util("end - max(begin, free)"): "util returns the wrong value",
            one_line(
                "util(kernels, period)",
                "sum(any(b <= t * period / 8000 < e for b, e in kernels) for t in range(8000)) / 8000",
            ): "wrong value",
            one_line(
                "util(kernels, period)", "len({t for begin, end in kernels for t in range(begin, end)}) / period"
            ): "raises TypeError",
            one_line(
                "util(kernels, period)", "(kernels[-1][1] - kernels[0][0]) / period if kernels else 0"
            ): "wrong value",
        },
    ),
    "your-turn-activity": Answers(
        one_line(ACTIVITY, f"{SUM} / (period * sms)"),
        {
            one_line(ACTIVITY, f"{SUM} / period"): "sm_activity returns the wrong value",
            one_line(ACTIVITY, f"{SUM} / (period * sms)".replace("sms", "132")): "sms=80",
            one_line(ACTIVITY, f"{SUM.replace('sms', '132')} / (period * sms)"): "sms=80",
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
            spin("for (long long i = 0; i < clocks; i++);"): "A loop that only counts is removed",
            spin("long long now = start; while (now - start < clocks);"): "spin does not end",
            spin("while (clock64() - start < 10 * clocks);"): "spin waits too long",
            spin("while (clock64() < clocks);"): "spin ends too early",
            spin("start = clock(); while (clock() - start < clocks);"): "clock() has 32 bits",
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
}
