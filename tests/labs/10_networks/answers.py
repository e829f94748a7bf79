"""Right and wrong answers to the tasks of lesson 10's second notebook ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

ORDER = "receives_first(place)"
FINISH = "finish(ready, lasts)"
BUS = "all_gather_bus(ranks, count, itemsize, us)"
HELD = "held(parameters, ranks, stage)"


def finish(start: str = "0.0", body: str = "free = max(free, r) + t") -> str:
    return dedent(
        f"""\
        def finish(ready, lasts):
            free = {start}
            for r, t in zip(ready, lasts):
                {body}
            return free"""
    )


ANSWERS = {
    "your-turn-bus": Answers(
        one_line(BUS, "(ranks - 1) * count * itemsize / us / 1000"),
        {
            one_line(BUS, "ranks * count * itemsize / us / 1000"): "all_gather_bus returns the wrong value",
            one_line(BUS, "(ranks - 1) / ranks * count * itemsize / us / 1000"): "returns the wrong value",
            one_line(BUS, "(ranks - 1) * count * itemsize // us / 1000"): "returns the wrong value",
            one_line(BUS, "(ranks - 1) * count * itemsize / us"): "1000",
            one_line(BUS, "2 * (ranks - 1) * count * itemsize / us / 1000"): "2 times the right one",
        },
    ),
    "your-turn-order": Answers(
        one_line(ORDER, "place % 2 == 1"),
        {
            one_line(ORDER, "False"): "the programs stop for ever",
            one_line(ORDER, "True"): "the programs stop for ever",
            one_line(ORDER, "place == 0"): "too many rounds",
            one_line(ORDER, "place != 0"): "too many rounds",
            one_line(ORDER, "place // 2 % 2 == 1"): "too many rounds",
            one_line(ORDER, "place % 2"): "receives_first returns the wrong type",
        },
    ),
    "your-turn-finish": Answers(
        finish(),
        {
            finish(body="free = max(free, r + t)"): "finish returns the wrong value",
            finish(body="free += t"): "finish returns the wrong value",
            finish(body="free = r + t"): "finish returns the wrong value",
            finish(start="ready[0]", body="free += t"): "finish returns the wrong value",
            one_line(FINISH, "max(ready) + sum(lasts)"): "finish returns the wrong value",
            one_line(FINISH, "ready[-1] + lasts[-1]"): "finish returns the wrong value",
            one_line(FINISH, "max(ready[-1] + lasts[-1], ready[0] + sum(lasts))"): "finish returns the wrong value",
        },
    ),
    "your-turn-held": Answers(
        one_line(HELD, "parameters * (16 - (0, 12, 14, 16)[stage] + (0, 12, 14, 16)[stage] / ranks)"),
        {
            one_line(HELD, "16 * parameters / (ranks if stage else 1)"): "held returns the wrong value",
            one_line(HELD, "16 * parameters"): "held returns the wrong value",
            one_line(HELD, "parameters * (16 - (0, 12, 14, 16)[stage])"): "held returns the wrong value",
            one_line(
                HELD, "parameters * (16 - (0, 2, 4, 16)[stage] * (1 - 1 / ranks))"
            ): "held returns the wrong value",
        },
        shows="['1120', '293', '155', '18']",
    ),
}
