"""Right and wrong answers to the tasks of lesson 11's third notebook ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

WAIT = "wait(load, service)"
FLUSH = "flush(waiting, waited, batch_limit, wait_limit)"


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


def grow(missing: str = "-(-tokens // size) - len(blocks)", full: str = "missing > len(free)", move: str = "") -> str:
    return dedent(
        f"""\
        def grow(blocks, free, tokens, size):
            missing = {missing}
            if {full}:
                return False
            for _ in range(missing):
                {move or "blocks.append(free.pop())"}
            return True"""
    )


ANSWERS = {
    "your-turn-wait": Answers(
        one_line(WAIT, "load / (1 - load) * service / 2"),
        {
            one_line(WAIT, "load / (1 - load) * service"): "2 times the right one",
            one_line(WAIT, "load / (1 - load) / 2"): "wait returns the wrong value",
            one_line(WAIT, "round(load / (1 - load) * service / 2, 1)"): "wait returns the wrong value",
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
    "your-turn-grow": Answers(
        grow(),
        {
            grow("tokens // size - len(blocks)"): "grow takes the wrong number of blocks",
            grow("-(-tokens // size)"): "grow takes the wrong number of blocks",
            grow(full="missing >= len(free)"): "grow returns the wrong value",
            grow(full="False"): "grow raises IndexError",
            grow(move="blocks.append(free[-1])"): "grow loses a block, or gives one to two",
            grow(move="blocks.append(len(blocks))"): "grow loses a block, or gives one to two",
            grow().replace("return False", "return None"): "grow returns nothing",
            grow("min(-(-tokens // size) - len(blocks), len(free))"): "grow returns the wrong value",
        },
        also=(grow().replace("True", "1"),),
    ),
}
