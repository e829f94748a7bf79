"""Binary tensors at the front: the same answers as by JSON, and a reason for all that is not as it must be."""

import asyncio
import gzip
import json

import httpx
import numpy as np
import pytest

from kernels.serving.serve import engines
from kernels.serving.serve.service import binary_tensors, process
from kernels.serving.serve.service.application import Service
from kernels.serving.serve.service.request_body import BadRequest

SHAPE = (1, 2)
GOOD = {"name": "samples", "shape": [3, *SHAPE], "datatype": "FP32", "parameters": {"binary_data_size": 24}}
NUMBERS = np.arange(6, dtype="<f4").reshape(3, *SHAPE)


def packed(content, numbers=NUMBERS):
    head = json.dumps(content).encode()
    return head + numbers.tobytes(), str(len(head))


def asked(content, numbers=NUMBERS, most=4):
    body, header = packed(content, numbers)
    return binary_tensors.asked(body, header, SHAPE, most)


def test_samples_are_the_numbers_as_sent():
    found = asked({"inputs": [GOOD], "id": "a7"})
    np.testing.assert_array_equal(found.samples, NUMBERS)
    assert found.samples.dtype == np.float32
    assert (found.binary, found.name) == (False, "a7")


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        ([], 422, "no such input"),
        ({"inputs": [GOOD, GOOD]}, 422, "no such input"),
        ({"inputs": [GOOD | {"datatype": "FP16"}]}, 422, "no such input"),
        ({"inputs": [GOOD | {"name": "x"}]}, 422, "no such input"),
        ({"inputs": [GOOD | {"shape": [3, 2, 1]}]}, 422, r"the shape is \[3, 2, 1\]"),
        ({"inputs": [GOOD | {"shape": []}]}, 422, r"the shape is \[\]"),
        ({"inputs": [GOOD | {"shape": [True, 1, 2]}]}, 422, "the shape is"),
        ({"inputs": [GOOD | {"shape": [-3, 1, 2]}]}, 422, "holds -3 samples; send 1 to 4"),
        ({"inputs": [GOOD | {"shape": [5, 1, 2]}]}, 422, "holds 5 samples; send 1 to 4"),
        ({"inputs": [GOOD | {"shape": [2, 1, 2]}]}, 422, "16 bytes of numbers are needed, 24 follow"),
        ({"inputs": [GOOD | {"parameters": {"binary_data_size": 20}}]}, 422, "which says 20"),
        ({"inputs": [GOOD | {"parameters": None}]}, 422, "which says None"),
        ({"inputs": [GOOD], "outputs": [{"name": "classes"}]}, 422, "the only output is predictions"),
        ({"inputs": [GOOD], "outputs": 2 * [{"name": "predictions"}]}, 422, "the only output is predictions"),
        ({"inputs": [GOOD], "outputs": {"name": "predictions"}}, 422, "the only output is predictions"),
        ({"inputs": [GOOD], "outputs": 3}, 422, "the only output is predictions"),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_with_a_reason(content, status, said):
    with pytest.raises(BadRequest, match=said) as refused:
        asked(content)
    assert refused.value.status == status


def test_numbers_that_are_not_finite_are_refused():
    for bad in (np.nan, np.inf):
        numbers = NUMBERS.copy()
        numbers[1, 0, 1] = bad
        with pytest.raises(BadRequest, match="not finite"):
            asked({"inputs": [GOOD]}, numbers)


@pytest.mark.parametrize("header", [None, "", "-1", "1e3", "999999", "9" * 30])
def test_a_header_that_does_not_fit_the_body_is_refused(header):
    with pytest.raises(BadRequest, match="inference-header-content-length") as refused:
        binary_tensors.asked(packed({"inputs": [GOOD]})[0], header, SHAPE, 4)
    assert refused.value.status == 400


def test_json_that_would_hold_up_the_other_clients_is_not_parsed():
    """Ten megabytes of it kept `/health/live` waiting for six seconds."""
    assert asked({"inputs": [GOOD], "id": "x" * 10_000}).name == "x" * 10_000
    with pytest.raises(BadRequest, match="at most 16,384 "):
        asked({"inputs": [GOOD], "id": "x" * 20_000})


def test_a_head_that_is_no_json_is_refused():
    for head in (b"{", b"\xff\xfe", b"[" * 16_000):
        with pytest.raises(BadRequest, match="are no JSON") as refused:
            binary_tensors.asked(head, str(len(head)), SHAPE, 4)
        assert refused.value.status == 400


def served(requests):
    """What the service with the digits' network answers to each (path, body, headers)."""

    async def run():
        service = Service(engines.digits())
        transport = httpx.ASGITransport(app=service.application)
        async with service.running(), httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            return [await client.post(path, content=body, headers=headers) for path, body, headers in requests]

    return asyncio.run(run())


def test_the_service_answers_both_ways_as_it_answers_json():
    images = np.random.default_rng(3).random((5, 1, 8, 8), np.float32)
    size = {"parameters": {"binary_data_size": images.nbytes}}
    content = {"inputs": [GOOD | {"shape": list(images.shape)} | size]}
    asks = [content, content | {"parameters": {"binary_data_output": True}}]
    asks.append(content | {"outputs": [{"name": "predictions", "parameters": {"binary_data": True}}]})
    bodies = [packed(ask, images) for ask in asks]
    path = "/v2/models/engine/infer"
    requests = [(path, body, {"Inference-Header-Content-Length": header}) for body, header in bodies]
    requests += [("/v1/predict", json.dumps({"instances": images.tolist()}), {}), (path, b"", {})]
    plain, *binary, by_json, empty = served(requests)
    right = np.array(by_json.json()["predictions"], np.float32)
    (output,) = plain.json()["outputs"]
    assert (output["shape"], output["datatype"]) == ([5, 10], "FP32")
    np.testing.assert_array_equal(np.array(output["data"], np.float32).reshape(5, 10), right)
    for response in binary:
        cut = int(response.headers["Inference-Header-Content-Length"])
        (output,) = json.loads(response.content[:cut])["outputs"]
        assert output["parameters"] == {"binary_data_size": 200}
        np.testing.assert_array_equal(np.frombuffer(response.content[cut:], "<f4").reshape(5, 10), right)
    assert (empty.status_code, list(empty.json())) == (400, ["error"])


# What tritonclient 2.73.0 sent on 2026-11-26 before an image's bytes: its `infer` as it comes, with an id, and with an
# answer in JSON. The last test asks the client itself where it is installed.
IMAGE = (np.arange(64, dtype="<f4") / 64).reshape(1, 1, 8, 8)
TRITON_INPUT = '"inputs":[{"name":"samples","shape":[1,1,8,8],"datatype":"FP32","parameters":{"binary_data_size":256}}]'
TRITON_HEADS = {
    '{%s,"parameters":{"binary_data_output":true}}': True,
    '{"id":"7",%s,"outputs":[{"name":"predictions","parameters":{"binary_data":true}}]}': True,
    '{%s,"outputs":[{"name":"predictions","parameters":{"binary_data":false}}]}': False,
}


def test_what_tritonclient_sent_is_answered():
    heads = [(head % TRITON_INPUT).encode() for head in TRITON_HEADS]
    assert [len(head) for head in heads] == [146, 183, 175]  # as its own header said
    path, plain = "/v2/models/engine/infer", ("/v1/predict", json.dumps({"instances": IMAGE.tolist()}), {})
    asks = [(path, head + IMAGE.tobytes(), {"Inference-Header-Content-Length": str(len(head))}) for head in heads]
    by_json, *found = served([plain, *asks])
    right = np.array(by_json.json()["predictions"], np.float32)
    for response, binary in zip(found, TRITON_HEADS.values(), strict=True):
        cut = response.headers.get("Inference-Header-Content-Length")
        assert (cut is not None) == binary
        (output,) = json.loads(response.content[: int(cut or len(response.content))])["outputs"]
        numbers = np.frombuffer(response.content[int(cut) :], "<f4") if binary else np.array(output["data"], np.float32)
        np.testing.assert_array_equal(numbers.reshape(1, 10), right)


def test_a_compressed_body_is_refused_by_name():
    head, header = packed({"inputs": [GOOD]})
    said = {"Inference-Header-Content-Length": header, "Content-Encoding": "gzip"}
    for path in ("/v2/models/engine/infer", "/v1/predict"):
        (response,) = served([(path, gzip.compress(head), said)])
        assert (response.status_code, response.json()["error"][:38]) == (415, "the body's content-encoding is gzip; s")


def test_tritonclient_itself_is_answered():
    pytest.importorskip("geventhttpclient", reason="tritonclient[http] is not installed")  # or its import fails
    triton = pytest.importorskip("tritonclient.http")
    with process.start("kernels.serving.serve.engines:digits") as service:
        client = triton.InferenceServerClient(service.url.removeprefix("http://"))
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("engine")
        right = service.ask(IMAGE).astype(np.float32)
        for binary in (True, False):
            given = triton.InferInput("samples", list(IMAGE.shape), "FP32")
            given.set_data_from_numpy(IMAGE)
            outputs = [triton.InferRequestedOutput("predictions", binary_data=binary)]
            for found in (
                client.infer("engine", [given], outputs=outputs),
                client.async_infer("engine", [given], outputs=outputs).get_result(),
            ):
                np.testing.assert_array_equal(found.as_numpy("predictions"), right)
        given.set_data_from_numpy(IMAGE, binary_data=False)
        with pytest.raises(triton.InferenceServerException, match="send numbers as binary data behind the JSON"):
            client.infer("engine", [given])
