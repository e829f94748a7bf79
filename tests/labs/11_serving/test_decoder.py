"""The decoder of random weights: what it generates does not depend on who runs beside, or where its blocks lie.

By the definition of attention, and by the kernels that a lab offers.
"""

import numpy as np
import pytest

from kernels.serving.serve.batching import tokens
from kernels.serving.serve.batching.decoder import HEADS, Decoder, normed, prompts
from kernels.serving.serve.batching.tokens import Engine, Memory, generate
from warpcourse.bench.attention import DEFINITION, by_kernels

REQUESTS = tokens.drawn(24, seed=7, rate=1e4)  # all at once, whatever the machine takes for a step
PROMPTS = prompts(REQUESTS, seed=7)
EVERY = range(len(REQUESTS))
KERNELS = by_kernels()
needs_kernels = pytest.mark.skipif(KERNELS is None, reason="no lab offers kernels for attention")


def generated(memory, slots, grow=tokens.grow, attention=DEFINITION, which=EVERY):
    model = Decoder(memory, [PROMPTS[number] for number in which], attention=attention)
    return model, generate([REQUESTS[number] for number in which], Engine(slots), memory, grow, model=model)


@pytest.fixture(scope="module")
def alone():
    return generated(Memory(1, 512), 1)[0].texts


def test_a_text_is_that_of_attention_without_a_cache(alone):
    """All layers over all tokens, each of which sees those before it."""
    model = Decoder(Memory(1, 1), PROMPTS, attention=DEFINITION)
    number = int(np.argmax([request.steps for request in REQUESTS]))
    text = alone[number]
    x = model.tokens[text] + model.places[: len(text)]
    for qkv, out, up, down in model.layers:
        q, k, v = (each.reshape(len(text), HEADS, -1) for each in np.split(normed(x) @ qkv, 3, axis=1))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
        weights = np.exp(scores) * np.tri(len(text))
        x = x + np.einsum("hij,jhd->ihd", weights / weights.sum(-1, keepdims=True), v).reshape(len(text), -1) @ out
        x = x + np.maximum(normed(x) @ up, 0) @ down
    likeliest = (normed(x) @ model.head).argmax(axis=1)
    begin = REQUESTS[number].prompt
    assert text[begin:] == likeliest[begin - 1 : -1].tolist()
    assert len(set(text[begin:])) > 10  # no loop of few tokens, in which attention would not matter


@pytest.mark.parametrize("memory", [Memory(80, 16), Memory(26, 7), Memory(192, 1)])
def test_all_texts_are_those_of_each_alone(memory, alone):
    model, made = generated(memory, 8)
    assert model.texts == alone
    assert [len(text) for text in alone] == [request.prompt + request.steps for request in REQUESTS]
    assert max(len(running) for *_, running, _ in made.steps) > 2
    assert (made.preempted > 0) == (memory.size < 16)


def test_a_block_of_two_changes_texts(alone):
    def shared(blocks, free, tokens, size):
        while len(blocks) * size < tokens:
            blocks.append(free[-1])
        return True

    model, _ = generated(Memory(80, 16), 8, shared)
    assert model.texts != alone


def test_a_place_that_nobody_wrote_gives_no_likely_token():
    model = Decoder(Memory(4, 16), [[1, 2, 3]], attention=DEFINITION)
    assert model([0], [[2]], [0]) > 0
    assert np.isfinite(model._decode([0], [[2]])).all()
    assert np.isnan(model._decode([0], [[3]])).all()


@needs_kernels
def test_kernels_generate_the_same_from_the_same_blocks(alone):
    """Three of the shortest, which share two slots, in the simulator."""
    few = sorted(EVERY, key=lambda number: REQUESTS[number].steps)[:3]
    model, made = generated(Memory(12, 16), 2, attention=KERNELS, which=few)
    assert model.texts == [alone[number] for number in few]
    assert max(len(running) for *_, running, _ in made.steps) == 2


@pytest.mark.gpu
@needs_kernels
@pytest.mark.parametrize("memory", [Memory(80, 16), Memory(16, 32)])
def test_kernels_on_a_gpu_generate_what_each_gets_alone(memory):
    model, made = generated(memory, 8, attention=KERNELS)
    assert model.texts == generated(Memory(32, 16), 1, attention=KERNELS)[0].texts
    assert (made.preempted > 0) == (memory.size > 16)
    default = Decoder(memory, PROMPTS)
    assert default.attention is KERNELS
