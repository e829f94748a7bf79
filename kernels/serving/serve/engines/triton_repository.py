"""Write the folder of a model for Triton Inference Server, which runs any engine of this lab by its name.

    python -m kernels.serving.serve.engines.triton_repository models
    tritonserver --model-repository=models                  # in NVIDIA's container, with this course in PYTHONPATH

    models/digits/config.pbtxt          what the model takes and answers, and how Triton batches it
    models/digits/1/model.py            version 1: `triton_model`, by Triton's Python backend

The limits of the lab's batcher have their counterparts: `batch_limit` is max_batch_size, `wait_limit`
max_queue_delay_microseconds, `capacity` max_queue_size (of requests, where the lab counts samples), and as many
instances run as instance_group says. No Triton server has loaded such a folder here; a test reads the configuration by
Triton's own protobuf, from tritonclient (`make setup-cluster`).
Source: github.com/triton-inference-server: server, docs/user_guide; python_backend, README.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from kernels.serving.serve import engines
from kernels.serving.serve.batching.batcher import Limits

_MODEL = Path(__file__).with_name("triton_model.py")


def configuration(
    name: str, shape: tuple[int, ...], answer: tuple[int, ...], limits: Limits, instances: int, **parameters: str
) -> str:
    """Return the text of config.pbtxt. Shapes are of one sample, since Triton adds the batch."""
    # JSON escapes quotation marks and backslashes as protobuf's text format does.
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in parameters.items()}
    given = "".join(
        f'parameters {{\n  key: "{key}"\n  value {{\n    string_value: {value}\n  }}\n}}\n'
        for key, value in quoted.items()
    )
    return f"""name: "{name}"
backend: "python"
max_batch_size: {limits.batch_limit}
input {{
  name: "samples"
  data_type: TYPE_FP32
  dims: [ {", ".join(map(str, shape))} ]
}}
output {{
  name: "predictions"
  data_type: TYPE_FP32
  dims: [ {", ".join(map(str, answer))} ]
}}
dynamic_batching {{
  max_queue_delay_microseconds: {round(limits.wait_limit * 1e6)}
  default_queue_policy {{
    max_queue_size: {limits.capacity}
  }}
}}
instance_group {{
  kind: KIND_CPU
  count: {instances}
}}
{given}"""


def write_engine(
    repository: str | Path, name: str, engine: str, limits: Limits | None = None, *, instances: int = 1, **options: Any
) -> Path:
    """Write the folder of a model that runs `engine`, which is made once here for its shapes; return the folder.

    `instances`: engines that Triton starts. ValueError for a name that is no folder's, EngineError for the engine.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ValueError(f"{name!r} is no name of a model: use letters, digits, _ . and -, for it names a folder")
    made = engines.make(engine, **options)
    answer = engines.warm_up(made) or (1,)
    engines.close(made)
    folder = Path(repository) / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "1" / "model.py").write_bytes(_MODEL.read_bytes())
    text = configuration(
        name, made.shape, answer, limits or Limits(), instances, engine=engine, options=json.dumps(options)
    )
    (folder / "config.pbtxt").write_text(text, encoding="utf-8")
    return folder


if __name__ == "__main__":
    print("written:", write_engine(sys.argv[1], "digits", "kernels.serving.serve.engines:digits"))
