"""What clients send to lab 11's service: bodies that are read, and bodies that are refused with a reason."""

import asyncio
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.serving.serve.service import request_body
from kernels.serving.serve.service.request_body import BadRequest, read, samples

SHAPE = (2, 3)
SAMPLE = [[1, 2.5, -3], [0, 1e-3, 4e30]]


def body(instances) -> bytes:
    return json.dumps({"instances": instances}).encode()


def test_samples_come_as_float32():
    found = samples(body([SAMPLE, SAMPLE]), SHAPE, 2)
    assert (found.shape, found.dtype) == ((2, *SHAPE), np.float32)
    np.testing.assert_array_equal(found[1], np.float32(SAMPLE))
    whole = samples(body([[1, 2], [3, 2**62]]), (2,), 4)
    np.testing.assert_array_equal(whole, np.float32([[1, 2], [3, 2**62]]))
    np.testing.assert_array_equal(samples(body([10**30]), (), 4), np.float32([1e30]))  # more than 64 bits
    assert samples(b" \n" + body([[1]]), (1,), 1) == 1


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (
            b"",
            400,
            'the body is no JSON (Expecting value: line 1 column 1 (char 0)); send {"instances": [sample, ...]}',
        ),
        (b"instances=1", 400, "the body is no JSON"),
        (b"\xff\xfe{", 400, "the body is no JSON"),
        (b'{"instances": [1,]}', 400, "the body is no JSON"),
        (b'{"instances": NaN}', 400, "the body holds NaN, which is no JSON; send finite numbers"),
        (b'{"instances": [[-Infinity]]}', 400, "the body holds -Infinity"),
        (b'{"instances": 1, "instances": 2}', 400, "the same key twice"),
        (b"[" * 100_000, 400, "the body is nested too deep"),
        (b'{"instances": ' + b"9" * 5000 + b"}", 400, "the body is no JSON (Exceeds the limit"),
        (b"[1, 2]", 422, 'the body is a list; send {"instances": [sample, ...]}, each sample nested lists of numbers'),
        (b"null", 422, "the body is null"),
        (b"{}", 422, "the body is an object without the key 'instances'"),
        (b'{"instances": [], "x": 1}', 422, "the body has the key 'x'; it may have 'instances' alone"),
        (b'{"instances": {"b64": "AA=="}}', 422, "instances is an object"),
        (b'{"instances": []}', 422, "instances holds 0 samples; send 1 to 4"),
        (body([SAMPLE] * 5), 422, "instances holds 5 samples; send 1 to 4"),
        (body([1, 2]), 422, "instances[0] is a number; it must be nested lists of numbers, of shape (2, 3)"),
        (body(SAMPLE), 422, "instances[0] is a list of 3; it must be nested lists of numbers, of shape (2, 3)"),
        (body([SAMPLE, SAMPLE[:1]]), 422, "instances[1] is a list of 1"),
        (body([SAMPLE, [[1, 2, 3], [1, 2]]]), 422, "instances[1][1] is a list of 2; it must be a list of 3 numbers"),
        (body([[[1, 2, 3], [1, [2], 3]]]), 422, "instances[0][1][1] is a list; it must be a number"),
        (body([[[1, 2, 3], [1, "2", 3]]]), 422, "instances[0][1][1] is the text '2'; it must be a number"),
        (body([[[1, 2, 3], [1, None, 3]]]), 422, "instances[0][1][1] is null; it must be a number"),
        (body([[[1, 2, 3], [1, True, 3]]]), 422, "instances[0][1][1] is true or false; it must be a number"),
        (body([[[True] * 3] * 2]), 422, "instances[0][0][0] is true or false"),
        (body(["ab"]), 422, "instances[0] is the text 'ab'"),
        (body([{"x": SAMPLE}]), 422, "instances[0] is an object"),
        (body([[[1, 2, 3], [1, 2, 1e39]]]), 422, "instances[0][1][2] is no finite float32; send numbers up to 3.4e38"),
        (b'{"instances": [[[1, 2, 3], [1, 2, 1e999]]]}', 422, "instances[0][1][2] is no finite float32"),
        (body([[[1, 2, 3], [1, 2, 10**400]]]), 422, "instances[0][1][2] is no finite float32"),
        (body([[[[[[1]]]]]]), 422, "instances[0] is a list of 1"),
        (b'{"instances": ' + b"[" * 200 + b"]" * 200 + b"}", 422, "instances[0] is a list of 1"),
        (body([["x" * 1000]]), 422, "instances[0] is a list of 1"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_send(sent, status, message):
    with pytest.raises(BadRequest, match=re.escape(message)) as refused:
        samples(sent, SHAPE, 4)
    assert refused.value.status == status
    assert len(str(refused.value)) < 300


def test_a_long_text_is_not_repeated_whole():
    with pytest.raises(BadRequest, match=r"instances\[0\] is the text 'x{30,40}…; it must") as refused:
        samples(body(["x" * 10_000]), (1,), 1)
    assert len(str(refused.value)) < 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["instances", "a"]), inner, max_size=2),
    max_leaves=20,
)


@given(json_values, st.booleans())
def test_anything_is_either_samples_or_refused(value, wrapped):
    """What comes through is exactly what NumPy makes of the numbers, and nothing raises another error."""
    sent = {"instances": value} if wrapped else value
    try:
        found = samples(json.dumps(sent).encode(), (2,), 3)
    except BadRequest:
        return
    assert found.shape[1:] == (2,)
    assert all(type(number) in (int, float) for row in sent["instances"] for number in row)
    np.testing.assert_array_equal(found, np.array(sent["instances"], np.float64).astype(np.float32))


@given(st.binary(max_size=50))
def test_any_bytes_are_either_samples_or_refused(sent):
    with pytest.raises(BadRequest):
        samples(sent, SHAPE, 3)


# -- reading -----------------------------------------------------------------------------------------------------------


def reading(parts, length=None, limit=10, seconds=60.0):
    """What `read` makes of these parts, and how many of them it took. None as a part: no more comes."""
    taken = []

    async def stream():
        for part in parts:
            if part is None:
                await asyncio.Event().wait()
            taken.append(part)
            yield part

    async def run():
        return await read(stream(), length, limit, seconds, lambda more: None)

    return asyncio.run(run()), len(taken)


def test_a_body_is_read_to_its_end():
    assert reading([b"abc", b"", b"defghij"]) == (b"abcdefghij", 3)
    assert reading([], "0") == (b"", 0)
    assert reading([b"ab"], "not a number") == (b"ab", 1)


@pytest.mark.parametrize(
    ("parts", "length"), [([b"abcdef", b"ghijk"], None), ([b"ab"], "11"), ([b"a" * 11], "5"), ([], "9" * 19)]
)
def test_a_body_that_is_too_large_is_refused(parts, length):
    with pytest.raises(BadRequest, match=r"the body has [\d,]+ bytes or more; send at most 10") as refused:
        reading(parts, length)
    assert refused.value.status == 413


def test_an_endless_body_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(request_body, "DISCARDED", 100)
    taken = 0

    async def endless():
        nonlocal taken
        while True:
            taken += 1
            yield b"12345678"

    with pytest.raises(BadRequest) as refused:
        asyncio.run(read(endless(), None, 10, 60.0, lambda more: None))
    assert (refused.value.status, taken) == (413, 13)


def test_a_body_that_never_comes_is_given_up():
    with pytest.raises(BadRequest, match=r"the body did not arrive within 0.01 seconds") as refused:
        reading([b"abc", None], seconds=0.01)
    assert refused.value.status == 408
