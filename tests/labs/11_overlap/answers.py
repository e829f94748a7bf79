"""Right and wrong answers to the tasks of lesson 11's second notebook ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line


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


KERNEL_FIRST = """\
def overlapped(chunks):
    s = Schedule()
    for i in range(chunks):
        s.kernel(f"run {i}", i, ms=1, reads=f"x{i}", writes=f"y{i}")
        s.h2d(f"x{i}", i, ms=1)
        s.d2h(f"y{i}", i, ms=1)
    return s"""
BACK_FIRST = """\
def overlapped(chunks):
    s = Schedule()
    for i in range(chunks):
        s.h2d(f"x{i}", i, ms=1)
        s.d2h(f"y{i}", i, ms=1)
        s.kernel(f"run {i}", i, ms=1, reads=f"x{i}", writes=f"y{i}")
    return s"""
BY_STAGE = """\
def overlapped(chunks):
    s = Schedule()
    for i in range(chunks):
        s.h2d(f"x{i}", "in", ms=1)
        s.record(f"in {i}", "in")
        s.wait(f"in {i}", "run")
        s.kernel(f"run {i}", "run", ms=1, reads=f"x{i}", writes=f"y{i}")
        s.record(f"run {i}", "run")
        s.wait(f"run {i}", "back")
        s.d2h(f"y{i}", "back", ms=1)
    return s"""


def hand_over(*calls: str) -> str:
    return "\n    ".join(["def hand_over(s, i):", *calls])


def planes(
    index: str = "x, y = cuda.grid(2)",
    guard: str = "x < out.shape[2] and y < out.shape[1]",
    body: str = "",
    colours: str = "3",
) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def planes(frame, scale, out):
            {index}
            if {guard}:
                for c in range({colours}):
                    {body or "out[c, y, x] = frame[y, x, c] * scale"}
        """
    )


def sharing(in_turns: str = "min(n, 1 / busy)", together: str = "min(n, 1 / (busy * fill))") -> str:
    return "\n\n\n".join((one_line("in_turns(n, busy)", in_turns), one_line("together(n, busy, fill)", together)))


ANSWERS = {
    "your-turn-overlapped": Answers(
        overlapped(),
        {
            overlapped("0", back("0")): "what could overlap does not",
            overlapped("i % 2", back("i % 2")): "what could overlap does not",
            overlapped(back=back('"back"')): "leaves a race",
            KERNEL_FIRST: "'run 0' comes before 'H2D x0'",
            BACK_FIRST: "'D2H y0' comes before 'run 0'",
            overlapped(back="pass"): "does not issue each copy and each kernel once",
            overlapped(back=back("i", 'f"x{i}"')): "does not issue each copy and each kernel once",
            overlapped(read='"x0"'): "works on other buffers",
            overlapped(back=back("i").replace("ms=1", "ms=0.5")): "shall take one unit of time",
        },
        also=(BY_STAGE, overlapped("i % 3", back("i % 3"))),
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
            planes(
                body="out[y, x, c] = frame[y, x, c] * scale"
            ): "the index into out, and the guard: the last element is out[2",
            planes(body="out[:, y, x] = frame[y, x, :] * scale"): "out[:] = ... is for NumPy on the host",
            planes(body="out[0, y, x] = frame[y, x, 0] * scale"): "never written",
            planes(
                "first = cuda.grid(1)",
                "first == 0",
                "for y in range(out.shape[1]):\n"
                "                        for x in range(out.shape[2]):\n"
                "                            out[c, y, x] = frame[y, x, c] * scale",
            ): "one thread does too much of the work",
        },
        also=(planes(colours="frame.shape[2]"),),
    ),
    "your-turn-sharing": Answers(
        sharing(),
        {
            sharing(in_turns="n"): "in_turns returns the wrong value",
            sharing(in_turns="min(n, 1 // busy)"): "in_turns returns the wrong value",
            sharing(in_turns="min(n, busy)"): "in_turns returns the wrong value",
            sharing(together="min(n, 1 / fill)"): "together returns the wrong value",
            sharing(together="n"): "together returns the wrong value",
            sharing(together="min(n, 1 / busy / fill, 7)"): "together returns the wrong value",
        },
    ),
}
