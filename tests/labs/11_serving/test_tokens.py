"""The token generator in virtual time: what it must keep by construction, by hand, and what the lesson says of it."""

import json

import numpy as np
import pytest

from kernels.serving.serve.batching import tokens
from kernels.serving.serve.batching.tokens import Engine, Memory, Request, generate
from warpcourse.paths import COURSE


def rule(waiting, waited, batch_limit, wait_limit):
    return waiting >= batch_limit or waited >= wait_limit


def test_two_requests_by_hand():
    engine = Engine(slots=2, step=1.0, sequence=0.5, token=0.1)
    made = generate([Request(0.0, 10, 2), Request(0.5, 20, 3)], engine, Memory(8, 8))
    # The first step reads ten tokens for one request; in the second both run, and twenty tokens are read.
    assert made.first == pytest.approx([2.5, 2.5 + 1 + 2 * 0.5 + 2.0])
    assert made.end == pytest.approx([6.5, 6.5 + 2 * 1.5])
    assert made.first_token == pytest.approx([2.5, 6.0])
    assert made.per_token == pytest.approx([4.0, 1.5])


def test_nobody_joins_a_batch_of_requests():
    requests = [Request(0.0, 4, 10), Request(0.1, 4, 1), Request(1.5, 4, 1)]
    alone, joined = (generate(requests, Engine(slots=4), Memory(16, 16), flush=f, wait_limit=0.2) for f in (rule, None))
    assert alone.begun[2] == alone.end[0]
    assert joined.begun[2] < joined.end[0]


@pytest.mark.parametrize("flush", [None, rule])
@pytest.mark.parametrize("seed", range(5))
def test_all_tokens_come_within_slots_and_memory(flush, seed):
    requests, memory, engine = tokens.drawn(60, seed, rate=1.0), Memory(24, 8), Engine(slots=5)
    made = generate(requests, engine, memory, flush=flush)
    assert not np.isnan(made.end).any()
    assert (made.first_token > 0).all()
    ran = [sum(number in running for *_, running, _ in made.steps) for number in range(60)]
    assert ran == [request.steps for request in requests]
    for (_, end, running, used), (begin, *_) in zip(made.steps, made.steps[1:], strict=False):
        assert len(set(running)) == len(running) <= 5
        assert used <= 24
        assert begin >= end


def test_one_that_finds_no_block_makes_the_youngest_start_anew():
    requests = [Request(0.0, 8, 30), Request(0.0, 8, 30)]
    made = generate(requests, Engine(), Memory(6, 8))
    assert made.preempted > 0
    assert made.end[0] < made.end[1]


def test_what_would_never_end_is_an_error():
    with pytest.raises(ValueError, match="request 0 needs 5 blocks of 4"):
        generate([Request(0.0, 30, 3)], Engine(), Memory(4, 8))
    with pytest.raises(ValueError, match="flush starts no batch"):
        generate([Request(0.0, 3, 3)], Engine(), Memory(4, 8), flush=lambda *_: False)


def test_what_the_lesson_says_of_its_run():
    requests = tokens.drawn(200, seed=11, rate=0.25)
    longest = max(request.prompt + request.steps for request in requests)
    reserved = Memory(1280 // longest, longest)
    assert reserved.blocks == 7
    batches, joining = (generate(requests, Engine(), reserved, flush=f) for f in (rule, None))
    blocks = generate(requests, Engine(), Memory(80, 16))
    cells = json.loads((COURSE / "notebooks" / "11_serving.ipynb").read_text())["cells"]
    said = next("".join(cell["source"]) for cell in cells if cell["id"] == "serving-tokens-after")
    assert f"{joining.throughput / batches.throughput:.1f} times the tokens" in said
    assert f"blocks hold {max(len(running) for *_, running, _ in blocks.steps)}" in said
    first = [np.mean(made.first_token) for made in (joining, blocks)]
    assert f"in place of {first[0]:.0f}" in said
    assert f"after {first[1]:.0f}" in said
