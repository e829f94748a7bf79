"""Lab 11's model repository for Triton: what is written is read by Triton's own protobuf, and model.py answers.

No Triton server runs here: model.py runs with a stand-in for the module that Triton gives it.
"""

import importlib
import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.engines import digits_network
from kernels.serving.serve.engines import triton_repository as triton

DIGITS = "kernels.serving.serve.engines:digits"
LIMITS = Limits(batch_limit=8, wait_limit=0.0015, capacity=64)
WITH_CLIENT = pytest.mark.skipif(
    importlib.util.find_spec("tritonclient") is None,
    reason="tritonclient is not installed; make setup-cluster installs it",
)


@pytest.fixture
def models(tmp_path):
    triton.write_engine(tmp_path, "digits", DIGITS, LIMITS, instances=2)
    return tmp_path


def parsed(text):
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    return text_format.Parse(text, model_config_pb2.ModelConfig())


@WITH_CLIENT
def test_what_is_written_says_to_triton_what_was_asked_for(models):
    config = parsed((models / "digits" / "config.pbtxt").read_text())
    assert (config.name, config.backend, config.max_batch_size) == ("digits", "python", 8)
    assert (config.input[0].name, list(config.input[0].dims)) == ("samples", [1, 8, 8])
    assert (config.output[0].name, list(config.output[0].dims)) == ("predictions", [10])
    assert config.dynamic_batching.max_queue_delay_microseconds == 1500
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 64
    assert [(group.Kind.Name(group.kind), group.count) for group in config.instance_group] == [("KIND_CPU", 2)]
    assert config.parameters["engine"].string_value == DIGITS


@WITH_CLIENT
@given(st.dictionaries(st.sampled_from(["path", "of"]), st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_in_the_options_comes_back(options):
    config = parsed(triton.configuration("m", (1,), (1,), LIMITS, 1, options=json.dumps(options)))
    assert json.loads(config.parameters["options"].string_value) == options


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b"])
def test_a_name_that_is_no_folders_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="is no name of a model"):
        triton.write_engine(tmp_path, name, DIGITS)
    assert list(tmp_path.iterdir()) == []


# -- model.py, without Triton ------------------------------------------------------------------------------------------


class Tensor:
    def __init__(self, name, values):
        self.name, self._values = name, values

    def as_numpy(self):
        return self._values


@pytest.fixture
def triton_model(models, monkeypatch):
    """The model in the repository, as Triton's Python backend would make it."""
    utils = ModuleType("triton_python_backend_utils")
    utils.Tensor = Tensor
    utils.TritonError = lambda message: message
    utils.InferenceResponse = lambda output_tensors, error=None: SimpleNamespace(tensors=output_tensors, error=error)
    utils.get_input_tensor_by_name = lambda request, name: next(tensor for tensor in request if tensor.name == name)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utils)
    path = models / "digits" / "1" / "model.py"
    spec = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def made(engine=DIGITS, **options):
        model = module.TritonPythonModel()
        given = {"engine": {"string_value": engine}, "options": {"string_value": json.dumps(options)}}
        model.initialize({"model_config": json.dumps({"parameters": given})})
        return model

    return made


def request(samples):
    return [Tensor("samples", samples)]


def test_model_py_answers_each_request_of_a_batch(triton_model):
    images = digits_network.digits()[2][:6]
    expected = digits_network.probabilities(digits_network.load(), images)
    bad = images[:2].copy()
    bad[1, 0, 3, 3] = np.nan
    model = triton_model()
    found = model.execute([request(images[:1]), request(bad), request(images[1:4]), request(images[4:, ..., :7])])
    assert [response.error for response in found] == [
        None,
        "samples holds numbers that are not finite",
        None,
        "samples has the shape (2, 1, 8, 7); it must be (samples, 1, 8, 8)",
    ]
    for response, part in ((found[0], expected[:1]), (found[2], expected[1:4])):
        (tensor,) = response.tensors
        assert (tensor.name, tensor.as_numpy().dtype) == ("predictions", np.float32)
        np.testing.assert_allclose(tensor.as_numpy(), part, atol=1e-5)
    assert [r.error for r in model.execute([request(bad)])] == ["samples holds numbers that are not finite"]
    model.finalize()


def test_model_py_answers_when_the_engine_fails(triton_model, monkeypatch):
    model = triton_model("kernels.serving.serve.engines:virtual", per_batch=0, per_sample=0)
    monkeypatch.setattr(model._engine, "predict", lambda batch: batch[:0])
    found = model.execute([request(np.zeros((1, 4), np.float32)), request(np.zeros((2, 4), np.float32))])
    assert all("the engine failed: the engine virtual engine answered a batch of 3" in r.error for r in found)
