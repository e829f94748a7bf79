"""Binary tensors of the Open Inference Protocol (KServe's v2), which Triton speaks: JSON, then numbers as in memory.

    POST /v2/models/engine/infer        with the header Inference-Header-Content-Length: bytes of the JSON
    {"inputs": [{"name": "samples", "shape": [2, 1, 8, 8], "datatype": "FP32",
                 "parameters": {"binary_data_size": 512}}]}
    ... and 512 bytes, little-endian, row by row

Numbers in JSON are parsed one by one under Python's lock; here they are taken as they lie. Source: KServe, "Binary
Tensor Data Extension". Of it: one input, FP32; the answer is binary if asked for. tritonclient's `infer`, `async_infer`
and `is_..._ready` work, its requests for metadata and for versions of a model do not.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.serving.serve.service.request_body import BadRequest

MODEL, INPUT, OUTPUT = "engine", "samples", "predictions"
HEADER = "inference-header-content-length"
MOST_JSON = 1 << 14  # bytes: it is parsed while every other client waits


@dataclass(frozen=True)
class Asked:
    """`samples`: float32, (count, *shape). `binary`: whether the answer shall be. `name`: the request's id, or ""."""

    samples: np.ndarray
    binary: bool
    name: str


def expected(shape: tuple[int, ...]) -> str:
    """Return what to send to an engine of this shape, in words."""
    sizes = ", ".join(map(str, ("count", *shape)))
    return (
        f'one input {{"name": "{INPUT}", "shape": [{sizes}], "datatype": "FP32", '
        '"parameters": {"binary_data_size": bytes}}, its bytes behind the JSON'
    )


def asked(body: bytes, header: str | None, shape: tuple[int, ...], most: int) -> Asked:
    """Return what a body asks for. `header`: Inference-Header-Content-Length. `most`: samples in a request.

    BadRequest 400 for what is not JSON and then bytes, 422 for JSON that describes no such samples.
    """
    if header is None or not header.isdecimal() or len(header) > 12 or int(header) > min(len(body), MOST_JSON):
        raise BadRequest(
            400,
            f"the header {HEADER} is {header!r:.40}; send numbers as binary data behind the JSON, and in it the "
            f"bytes of the JSON, at most {MOST_JSON:,} and those of the body",
        )
    try:
        given = json.loads(body[: int(header)])
    except (ValueError, RecursionError) as error:
        raise BadRequest(
            400, f"the first {header} bytes are no JSON ({str(error)[:80]}); send {expected(shape)}"
        ) from None
    inputs = given.get("inputs") if isinstance(given, dict) else None
    one = inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else None
    if not isinstance(one, dict) or (one.get("name"), one.get("datatype")) != (INPUT, "FP32"):
        raise BadRequest(422, f"the JSON holds no such input; send {expected(shape)}")
    sizes = one.get("shape")
    whole = isinstance(sizes, list) and all(type(size) is int for size in sizes)
    if not whole or tuple(sizes[1:]) != shape:
        raise BadRequest(422, f"the shape is {sizes!s:.60}; send {expected(shape)}")
    if not 0 < sizes[0] <= most:
        raise BadRequest(422, f"{INPUT} holds {sizes[0]:,} samples; send 1 to {most}")
    there, needed, said = len(body) - int(header), 4 * math.prod(sizes), _parameter(one, "binary_data_size")
    if not there == needed == said:
        raise BadRequest(
            422, f"{needed:,} bytes of numbers are needed, {there:,} follow the JSON, which says {said!s:.40}"
        )
    samples = np.frombuffer(body, "<f4", offset=int(header)).reshape(sizes)
    if not np.isfinite(samples).all():
        raise BadRequest(422, f"{INPUT} has a number that is not finite; send finite ones")
    outputs = given.get("outputs") or [{"name": OUTPUT}]
    first = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else None
    if not isinstance(first, dict) or first.get("name") != OUTPUT:
        raise BadRequest(422, f"the only output is {OUTPUT}; ask for it, or leave out outputs")
    binary = _parameter(first, "binary_data", _parameter(given, "binary_data_output"))
    return Asked(samples, binary is True, given["id"] if isinstance(given.get("id"), str) else "")


def answer(request: Asked, rows: Sequence[np.ndarray]) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of an answer to `request`: a row for each of its samples."""
    found = np.stack(rows)
    kind = {"f": "FP", "i": "INT", "u": "UINT"}[found.dtype.kind]
    output: dict[str, Any] = {"name": OUTPUT, "shape": list(found.shape), "datatype": f"{kind}{8 * found.itemsize}"}
    content = {"model_name": MODEL, "outputs": [output]} | ({"id": request.name} if request.name else {})
    if not request.binary:
        output["data"] = found.ravel().tolist()
        return json.dumps(content).encode(), {"content-type": "application/json"}
    numbers = found.astype(found.dtype.newbyteorder("<")).tobytes()
    output["parameters"] = {"binary_data_size": len(numbers)}
    head = json.dumps(content).encode()
    return head + numbers, {HEADER: str(len(head)), "content-type": "application/octet-stream"}


def _parameter(given: Any, name: str, default: Any = None) -> Any:
    parameters = given.get("parameters") if isinstance(given, dict) else None
    return parameters.get(name, default) if isinstance(parameters, dict) else default
