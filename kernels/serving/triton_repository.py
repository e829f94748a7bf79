"""Model repositories of Triton Inference Server: written from an engine or an ONNX file, and checked as Triton would.

    python -m kernels.serving.triton_repository models
    tritonserver --model-repository=models                  # in NVIDIA's container, with this course in PYTHONPATH

    models/digits/config.pbtxt          what the model takes and answers, and how Triton batches it
    models/digits/1/model.py            version 1: an engine of this lab, by Triton's Python backend
    models/digits_onnx/1/model.onnx     the same network by its ONNX Runtime backend, without this course

The limits of the lab's batcher have their counterparts: `batch_limit` is max_batch_size, `wait_limit`
max_queue_delay_microseconds, `capacity` max_queue_size (of requests, where the lab counts samples), and as many
instances run as instance_group says.

`check` reads the configuration by Triton's own protobuf, from tritonclient (`make setup-cluster`), and holds it to the
rules that the server applies when it loads a model. Nothing here has been loaded by a Triton server.
Source: github.com/triton-inference-server: core, src/model_config_utils.cc; server, docs/user_guide.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx

from kernels.serving import digits_onnx, engines
from kernels.serving.batcher import Limits

CONFIG, VERSION = "config.pbtxt", "1"
PYTHON, ONNX = "python", "onnxruntime"
_FILES = {PYTHON: "model.py", ONNX: "model.onnx"}  # what each backend looks for in the folder of a version
_MODEL = Path(__file__).with_name("triton_model.py")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TYPES = {onnx.TensorProto.FLOAT: "TYPE_FP32", onnx.TensorProto.FLOAT16: "TYPE_FP16"}


class RepositoryError(ValueError):
    """A model that Triton would not load: the message says which, why, and what to do."""


def write_engine(
    repository: str | Path,
    name: str,
    engine: str,
    limits: Limits | None = None,
    *,
    instances: int = 1,
    gpu: bool = False,
    **options: Any,
) -> Path:
    """The folder of a model that runs an engine by its name; the engine is made once here, for its shapes.

    `instances`: engines that Triton starts, on each GPU if `gpu`. RepositoryError for what Triton would refuse,
    EngineError for the engine.
    """
    made = engines.make(engine, **options)
    answer = engines.warm_up(made) or (1,)
    engines.close(made)
    sides = [
        _side("input", "samples", "TYPE_FP32", made.shape),
        _side("output", "predictions", "TYPE_FP32", answer),
    ]
    parameters = {"engine": engine, "options": json.dumps(options)}
    text = _config(name, PYTHON, sides, limits or Limits(), instances, gpu, parameters)
    return _written(repository, name, text, _FILES[PYTHON], _MODEL.read_bytes())


def write_onnx(
    repository: str | Path,
    name: str,
    model: onnx.ModelProto,
    limits: Limits | None = None,
    *,
    instances: int = 1,
    gpu: bool = False,
) -> Path:
    """The folder of a model that Triton's ONNX Runtime backend runs; names and shapes are the ONNX file's.

    RepositoryError for a model whose first extent, the batch, is not free.
    """
    sides = [
        _side(side, tensor, *_described(name, tensor, value))
        for side, values in (("input", _inputs(model)), ("output", model.graph.output))
        for tensor, value in ((value.name, value) for value in values)
    ]
    text = _config(name, ONNX, sides, limits or Limits(), instances, gpu, {})
    return _written(repository, name, text, _FILES[ONNX], model.SerializeToString())


# -- writing -----------------------------------------------------------------------------------------------------------


def _config(
    name: str, backend: str, sides: list[str], limits: Limits, instances: int, gpu: bool, parameters: dict[str, str]
) -> str:
    if not _NAME.fullmatch(name):
        raise RepositoryError(f"{name!r} is no name of a model: use letters, digits, _ . and -, for it names a folder")
    if isinstance(instances, bool) or not isinstance(instances, int) or instances < 1:
        raise RepositoryError(f"instances is {instances!r}; it must be a whole number, 1 or more")
    lines = [f"name: {_quoted(name)}", f"backend: {_quoted(backend)}"]
    if backend == ONNX:
        lines.append('platform: "onnxruntime_onnx"')
    lines += [
        f"max_batch_size: {limits.batch_limit}",
        *sides,
        "dynamic_batching {",
        f"  max_queue_delay_microseconds: {round(limits.wait_limit * 1e6)}",
        "  default_queue_policy {",
        f"    max_queue_size: {limits.capacity}",
        "  }",
        "}",
        "instance_group {",
        f"  kind: {'KIND_GPU' if gpu else 'KIND_CPU'}",
        f"  count: {instances}",
        "}",
    ]
    for key, value in parameters.items():
        lines += [
            "parameters {",
            f"  key: {_quoted(key)}",
            "  value {",
            f"    string_value: {_quoted(value)}",
            "  }",
            "}",
        ]
    return "\n".join(lines) + "\n"


def _side(side: str, name: str, dtype: str, dims: Iterable[int]) -> str:
    """An input or an output; `dims` are of one sample, since Triton adds the batch."""
    extents = ", ".join(map(str, dims))
    return f"{side} {{\n  name: {_quoted(name)}\n  data_type: {dtype}\n  dims: [ {extents} ]\n}}"


def _quoted(text: str) -> str:
    # JSON escapes quotation marks and backslashes as protobuf's text format does.
    return json.dumps(text, ensure_ascii=False)


def _written(repository: str | Path, name: str, text: str, file: str, content: bytes) -> Path:
    folder = Path(repository) / name
    (folder / VERSION).mkdir(parents=True, exist_ok=True)
    (folder / VERSION / file).write_bytes(content)
    (folder / CONFIG).write_text(text, encoding="utf-8")
    return folder


# -- checking ----------------------------------------------------------------------------------------------------------


def check_repository(repository: str | Path) -> dict[str, Any]:
    """The configurations of all models in a repository by their names; RepositoryError for the first that is wrong."""
    folders = sorted(path for path in Path(repository).iterdir() if path.is_dir())
    if not folders:
        raise RepositoryError(f"{repository} holds no model: write one by write_engine or write_onnx")
    return {folder.name: check(folder) for folder in folders}


def check(folder: str | Path) -> Any:
    """The configuration in a model's folder, Triton's protobuf ModelConfig.

    RepositoryError unless Triton would load it: by the rules of its model_config_utils.cc, and by what the backend
    finds in the folder of each version.
    """
    folder = Path(folder)
    config = _parsed(folder / CONFIG)

    def refuse(why: str) -> None:
        raise RepositoryError(f"{folder / CONFIG}: {why}")

    if config.name != folder.name:
        refuse(f"name is {config.name!r}; it must be {folder.name!r}, as its folder is called")
    if config.backend not in _FILES:
        refuse(f"backend is {config.backend!r}; this check knows {', '.join(_FILES)}")
    if config.max_batch_size < 1:
        refuse(f"max_batch_size is {config.max_batch_size}; a model that is batched needs 1 or more")
    for size in config.dynamic_batching.preferred_batch_size:
        if not 0 < size <= config.max_batch_size:
            refuse(f"preferred_batch_size {size} must be from 1 to max_batch_size, {config.max_batch_size}")
    for what, sides in (("input", config.input), ("output", config.output)):
        _check_sides(what, sides, refuse)
    if not config.instance_group:
        refuse("instance_group is missing: say how many instances run, and where")
    for group in config.instance_group:
        if group.count < 1:
            refuse(f"an instance_group has count {group.count}; it must be 1 or more")
        kind = type(group).Kind.Name(group.kind)
        if group.gpus and kind != "KIND_GPU":
            refuse(f"an instance_group of {kind} names GPUs; only KIND_GPU may")
    _check_versions(folder, config)
    return config


def _parsed(path: Path) -> Any:
    try:
        from google.protobuf import text_format
        from tritonclient.grpc import model_config_pb2
    except ImportError as error:
        raise RepositoryError(
            "tritonclient is not installed, whose protobuf a configuration is checked by: run make setup-cluster"
        ) from error
    try:
        return text_format.Parse(path.read_text(encoding="utf-8"), model_config_pb2.ModelConfig())
    except FileNotFoundError:
        raise RepositoryError(f"{path} is missing: every model needs one") from None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise RepositoryError(f"{path} is no configuration by Triton's protobuf: {error}") from None


def _check_sides(what: str, sides: Any, refuse: Any) -> None:
    names = [side.name for side in sides]
    if not names or not all(names):
        refuse(f"every model needs an {what}, and each a name")
    if len(set(names)) < len(names):
        refuse(f"two of its {what}s have one name: {', '.join(names)}")
    for side in sides:
        if not side.data_type:
            refuse(f"{what} {side.name!r} has no data_type")
        if not side.dims or any(extent < 1 and extent != -1 for extent in side.dims):
            refuse(f"{what} {side.name!r} has the dims {list(side.dims)}; give some, each above 0, or -1 for any")


def _check_versions(folder: Path, config: Any) -> None:
    # Triton passes over folders whose names are no number, or begin with 0.
    versions = [path for path in folder.iterdir() if path.is_dir() and re.fullmatch(r"[1-9][0-9]*", path.name)]
    if not versions:
        raise RepositoryError(f"{folder} has no version: put the model into {folder / VERSION}")
    for version in versions:
        file = version / _FILES[config.backend]
        if not file.is_file():
            raise RepositoryError(f"{file} is missing, where the backend {config.backend} looks for the model")
        (_check_python if config.backend == PYTHON else _check_onnx)(file, config)


def _check_python(file: Path, config: Any) -> None:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise RepositoryError(f"{file} is no Python: {error}") from None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    methods = {node.name for node in ast.walk(classes.get("TritonPythonModel", ast.Pass())) if hasattr(node, "name")}
    if "execute" not in methods:
        raise RepositoryError(f"{file} has no class TritonPythonModel with a method execute, which Triton calls")


def _check_onnx(file: Path, config: Any) -> None:
    try:
        model = onnx.load(file)
        onnx.checker.check_model(model)
    except Exception as error:  # of protobuf or of onnx, by what is wrong
        raise RepositoryError(f"{file} is no ONNX model: {str(error).splitlines()[0]}") from None
    for what, sides, values in (("input", config.input, _inputs(model)), ("output", config.output, model.graph.output)):
        there = {value.name: _described(file, value.name, value) for value in values}
        if sorted(there) != sorted(side.name for side in sides):
            said = ", ".join(side.name for side in sides)
            raise RepositoryError(f"{file} has the {what}s {', '.join(there)}, and its configuration says {said}")
        for side in sides:
            dtype = type(config).DESCRIPTOR.file.enum_types_by_name["DataType"].values_by_number[side.data_type].name
            if (dtype, tuple(side.dims)) != there[side.name]:
                raise RepositoryError(
                    f"{what} {side.name!r} is {there[side.name][0]} {list(there[side.name][1])} in {file}, and "
                    f"{dtype} {list(side.dims)} in its configuration"
                )


def _inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """What must be given: older files list weights among the inputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in weights]


def _described(where: Any, name: str, value: onnx.ValueInfoProto) -> tuple[str, tuple[int, ...]]:
    """(Triton's name of the type, extents of one sample, -1 for free ones) of a tensor with a free batch."""
    tensor = value.type.tensor_type
    extents = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in tensor.shape.dim]
    if tensor.elem_type not in _TYPES:
        raise RepositoryError(f"{where}: tensor {name!r} is of a type other than float32 and float16")
    if len(extents) < 2 or extents[0] != -1:
        raise RepositoryError(
            f"{where}: tensor {name!r} has the extents {extents}; the first must be free, for Triton's batches, and "
            "another must follow: export the model with a free batch"
        )
    return _TYPES[tensor.elem_type], tuple(extents[1:])


def main(arguments: list[str] | None = None) -> int:
    """Write both models of the lab's network, and check them."""
    parser = argparse.ArgumentParser(prog="python -m kernels.serving.triton_repository", description=main.__doc__)
    parser.add_argument("repository", help="the folder to write")
    given = parser.parse_args(arguments)
    write_engine(given.repository, "digits", "kernels.serving.engines:digits")
    write_onnx(given.repository, "digits_onnx", digits_onnx.model())
    try:
        checked = check_repository(given.repository)
    except RepositoryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, config in checked.items():
        print(f"{name}: {config.backend}, batches up to {config.max_batch_size}; checked by Triton's protobuf")
    return 0


if __name__ == "__main__":
    sys.exit(main())
