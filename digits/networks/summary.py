"""What a network consists of: its layers with their shapes, parameters, multiply-adds and memory, for one image.

    summary = of_network({"name": "lenet"}, image=(28, 28, 1), classes=10)     # in a process of its own

    {"name", "layers": [{"name", "kind", "shape", "parameters", "multiply_adds", "bytes", "inputs"}, ...],
     "parameters", "trainable", "parameter_bytes", "multiply_adds", "bytes"}

`shape` is what a layer puts out for one image, (height, width, channels) or (features,), `bytes` what that takes in
float32. A multiply-add is one product that is added to a sum: convolutions and dense layers have them. Biases, batch
norm, activations and pooling are not counted: one operation an element or so, as in the literature.
"""

import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from digits.files import DigitsError
from warpcourse.paths import COURSE

FLOAT_BYTES = 4
SECONDS = 120.0  # to import TensorFlow and build a network
MEMORY_BYTES = 8 << 30  # of address space: TensorFlow maps some 3 GiB, the rest is the network's


class TooLarge(DigitsError):
    """A network with more parameters than can be trained here."""


def of_network(network: Mapping[str, Any], image: tuple[int, int, int], classes: int) -> dict[str, Any]:
    """Return the summary of a network as a run's spec names it: {"name": ..., options}. Takes some 5 seconds.

    It is built in a process of its own, with a limit on memory. Raises DigitsError for a network that cannot be built
    for such images, or that is too large.
    """
    request = {"network": dict(network), "image": list(image), "classes": classes}
    command = [sys.executable, "-m", __name__]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    how: dict[str, Any] = {"capture_output": True, "text": True, "cwd": COURSE, "env": environment}
    try:
        ran = subprocess.run(command, input=json.dumps(request), timeout=SECONDS, **how)
    except subprocess.TimeoutExpired:
        raise TooLarge(f"The network was not built within {SECONDS:g} seconds. Make it smaller.") from None
    lines = ran.stdout.strip().splitlines()
    answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None
    if answer is None:
        raise TooLarge(
            f"The network could not be built: its process ended with {ran.returncode}, most likely for want of memory. "
            f"Make it smaller. ({(ran.stderr.strip().splitlines() or ['it said nothing'])[-1][:200]})"
        )
    if "error" in answer:
        raise DigitsError(answer["error"])
    return answer


def of_model(model: Any) -> dict[str, Any]:
    """Return the summary of a keras.Model of the functional kind."""
    layers = [_row(layer) for layer in model.layers]
    parameters = model.count_params()
    return {
        "name": model.name,
        "layers": layers,
        "parameters": parameters,
        "trainable": sum(math.prod(weight.shape) for weight in model.trainable_weights),
        "parameter_bytes": parameters * FLOAT_BYTES,
        "multiply_adds": sum(layer["multiply_adds"] for layer in layers),
        "bytes": sum(layer["bytes"] for layer in layers),
    }


def _row(layer: Any) -> dict[str, Any]:
    # The last call: a layer belongs to one network here.
    node = layer._inbound_nodes[-1] if layer._inbound_nodes else None
    output = _shape(node.output_tensors[0]) if node else ()
    read = [_shape(tensor) for tensor in node.input_tensors] if node else []
    return {
        "name": layer.name,
        "kind": type(layer).__name__,
        "shape": list(output),
        "parameters": layer.count_params() if layer.built else 0,
        "multiply_adds": int(_multiply_adds(layer, read[0], output)) if read else 0,
        "bytes": math.prod(output) * FLOAT_BYTES,
        "inputs": [tensor._keras_history.operation.name for tensor in node.input_tensors] if node else [],
    }


def _shape(tensor: Any) -> tuple[int, ...]:
    """Return the shape of one image; an extent that is open counts as 1."""
    return tuple(extent or 1 for extent in tensor.shape[1:])


def _multiply_adds(layer: Any, read: tuple[int, ...], written: tuple[int, ...]) -> int:
    """Return those of one image, from the shapes of what the layer reads and of what it writes."""
    window = math.prod(getattr(layer, "kernel_size", ()))
    between = read[-1] * getattr(layer, "depth_multiplier", 1)  # channels after the depthwise part
    match type(layer).__name__:
        case "Conv2D":
            return math.prod(written) * window * read[-1] // layer.groups
        case "Conv2DTranspose":  # each input pixel is added to a window of outputs
            return math.prod(read) * window * written[-1]
        case "DepthwiseConv2D":
            return math.prod(written[:-1]) * window * between
        case "SeparableConv2D":
            return (math.prod(written[:-1]) * window + math.prod(written)) * between
        case "Dense":
            return math.prod(written) * read[-1]
    return 0


# -- in the process ----------------------------------------------------------------------------------------------------


def main() -> None:
    """Read a request from standard input, and print the summary or {"error"} as one line of JSON."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    request = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        from digits import networks

        options = dict(request["network"])
        name = options.pop("name", "")
        answer = of_model(networks.build(name, tuple(request["image"]), request["classes"], options))
    except MemoryError:
        answer = {"error": "The network needs more memory than there is for it. Make it smaller."}
    except Exception as error:
        answer = {"error": _sentence(error)}
    print(json.dumps(answer))


def _sentence(error: Exception) -> str:
    if isinstance(error, DigitsError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:300]
    if type(error).__name__ in ("ResourceExhaustedError", "InternalError"):
        return f"The network needs more memory than there is for it. Make it smaller. ({first})"
    return f"The network cannot be built for these images: {type(error).__name__}: {first}"


if __name__ == "__main__":
    main()
