"""Lab 11's model repository for Triton: what is written passes Triton's own protobuf, and what is wrong is named.

No Triton server runs here: model.py runs with a stand-in for the module that Triton gives it, and the ONNX model with
ONNX Runtime.
"""

import importlib
import json
import shutil
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from kernels.serving import digits_network, digits_onnx
from kernels.serving import triton_repository as triton
from kernels.serving.batcher import Limits
from kernels.serving.triton_repository import RepositoryError

DIGITS = "kernels.serving.engines:digits"
LIMITS = Limits(batch_limit=8, wait_limit=0.0015, capacity=64)
WITH_CLIENT = pytest.mark.skipif(
    importlib.util.find_spec("tritonclient") is None,
    reason="tritonclient is not installed; make setup-cluster installs it",
)


@pytest.fixture
def models(tmp_path):
    triton.write_engine(tmp_path, "digits", DIGITS, LIMITS, instances=2)
    triton.write_onnx(tmp_path, "digits_onnx", digits_onnx.model(), LIMITS, gpu=True)
    return tmp_path


@WITH_CLIENT
def test_what_is_written_says_to_triton_what_was_asked_for(models):
    checked = triton.check_repository(models)
    assert sorted(checked) == ["digits", "digits_onnx"]
    for name, backend, tensor in (("digits", "python", "samples"), ("digits_onnx", "onnxruntime", "image")):
        config = checked[name]
        assert (config.name, config.backend, config.max_batch_size) == (name, backend, 8)
        assert (config.input[0].name, list(config.input[0].dims)) == (tensor, [1, 8, 8])
        assert list(config.output[0].dims) == [10]
        assert config.dynamic_batching.max_queue_delay_microseconds == 1500
        assert config.dynamic_batching.default_queue_policy.max_queue_size == 64
    kinds = [(group.Kind.Name(group.kind), group.count) for c in checked.values() for group in c.instance_group]
    assert kinds == [("KIND_CPU", 2), ("KIND_GPU", 1)]
    assert checked["digits"].parameters["engine"].string_value == DIGITS
    assert checked["digits_onnx"].platform == "onnxruntime_onnx"


@WITH_CLIENT
def test_the_command_writes_and_checks(tmp_path, capsys):
    assert triton.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "digits: python, batches up to 32; checked by Triton's protobuf",
        "digits_onnx: onnxruntime, batches up to 32; checked by Triton's protobuf",
    ]


@WITH_CLIENT
@given(st.dictionaries(st.sampled_from(["path", "of"]), st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_in_the_options_comes_back(options):
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    text = triton._config("m", "python", [], LIMITS, 1, False, {"options": json.dumps(options)})
    config = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert json.loads(config.parameters["options"].string_value) == options


WRONG = {
    'is no configuration by Triton\'s protobuf: 1:1 .*no field named "nam"': ("name:", "nam:"),
    "is no configuration by Triton's protobuf": ("TYPE_FP32", "TYPE_FLOAT"),
    "name is 'digit'; it must be 'digits', as its folder is called": ('name: "digits"', 'name: "digit"'),
    "backend is 'pytorch'; this check knows python, onnxruntime": ('"python"', '"pytorch"'),
    "max_batch_size is 0; a model that is batched needs 1 or more": ("max_batch_size: 8", "max_batch_size: 0"),
    "preferred_batch_size 16 must be from 1 to max_batch_size, 8": (
        "dynamic_batching {",
        "dynamic_batching {\n preferred_batch_size: [4, 16]",
    ),
    "every model needs an output, and each a name": ('name: "predictions"', ""),
    "two of its outputs have one name: predictions, predictions": (
        "dynamic_batching {",
        'output { name: "predictions" data_type: TYPE_FP32 dims: [1] }\ndynamic_batching {',
    ),
    "input 'samples' has no data_type": ("data_type: TYPE_FP32\n  dims: [ 1, 8, 8 ]", "dims: [ 1, 8, 8 ]"),
    r"input 'samples' has the dims \[1, 0, 8\]; give some, each above 0": ("1, 8, 8", "1, 0, 8"),
    r"output 'predictions' has the dims \[\]": ("dims: [ 10 ]", ""),
    "an instance_group has count 0; it must be 1 or more": ("count: 2", "count: 0"),
    "an instance_group of KIND_CPU names GPUs; only KIND_GPU may": ("count: 2", "count: 2 gpus: [0]"),
}


@WITH_CLIENT
@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_configuration_is_named(models, message):
    path, (old, new) = models / "digits" / triton.CONFIG, WRONG[message]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RepositoryError, match=message):
        triton.check(models / "digits")


@WITH_CLIENT
def test_a_missing_instance_group_and_files_are_named(models):
    path = models / "digits" / triton.CONFIG
    text = path.read_text()
    path.write_text(text[: text.index("instance_group")])
    with pytest.raises(RepositoryError, match="instance_group is missing"):
        triton.check(models / "digits")
    path.write_text(text)
    model = models / "digits" / "1" / "model.py"
    for content, message in (
        (b"def f(:", "model.py is no Python"),
        (b"class TritonPythonModel:\n    pass", "has no class TritonPythonModel with a method execute"),
        (b"class Model:\n    def execute(self, requests): pass", "has no class TritonPythonModel"),
    ):
        model.write_bytes(content)
        with pytest.raises(RepositoryError, match=message):
            triton.check(models / "digits")
    model.unlink()
    with pytest.raises(RepositoryError, match=r"model.py is missing, where the backend python looks"):
        triton.check(models / "digits")
    (models / "digits" / "1").rename(models / "digits" / "01")
    with pytest.raises(RepositoryError, match="digits has no version: put the model into"):
        triton.check(models / "digits")
    path.unlink()
    with pytest.raises(RepositoryError, match=r"config.pbtxt is missing: every model needs one"):
        triton.check(models / "digits")
    shutil.rmtree(models / "digits")
    shutil.rmtree(models / "digits_onnx")
    with pytest.raises(RepositoryError, match="holds no model"):
        triton.check_repository(models)


@WITH_CLIENT
def test_an_onnx_model_that_is_another_is_named(models):
    path = models / "digits_onnx" / triton.CONFIG
    text = path.read_text()
    for old, new, message in (
        ('"image"', '"picture"', "model.onnx has the inputs image, and its configuration says picture"),
        ("dims: [ 10 ]", "dims: [ 11 ]", r"output 'probabilities' is TYPE_FP32 \[10\] in .*, and TYPE_FP32 \[11\] in"),
        ("TYPE_FP32", "TYPE_FP16", r"input 'image' is TYPE_FP32 \[1, 8, 8\] in .*, and TYPE_FP16"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(RepositoryError, match=message):
            triton.check(models / "digits_onnx")
    path.write_text(text)
    (models / "digits_onnx" / "1" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(RepositoryError, match=r"model.onnx is no ONNX model"):
        triton.check(models / "digits_onnx")


def test_what_triton_could_not_batch_is_not_written(tmp_path):
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 2]) for name in "xy")
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "fixed", [x], [y]))
    with pytest.raises(RepositoryError, match=r"tensor 'x' has the extents \[4, 2\]; the first must be free"):
        triton.write_onnx(tmp_path, "fixed", model)
    for name in ("", "a/b", "..", "a b"):
        with pytest.raises(RepositoryError, match="is no name of a model"):
            triton.write_onnx(tmp_path, name, digits_onnx.model())
    with pytest.raises(RepositoryError, match="instances is 0; it must be a whole number, 1 or more"):
        triton.write_engine(tmp_path, "digits", DIGITS, instances=0)
    assert list(tmp_path.iterdir()) == []


def test_without_tritonclient_the_error_says_what_to_install(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "tritonclient.grpc", None)
    with pytest.raises(RepositoryError, match=r"tritonclient is not installed.* run make setup-cluster"):
        triton.check(models / "digits")


def test_the_onnx_model_computes_what_numpy_does():
    import onnxruntime

    images = digits_network.digits()[2][:33]
    session = onnxruntime.InferenceSession(digits_onnx.model().SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run([digits_onnx.OUTPUT], {digits_onnx.INPUT: images})
    np.testing.assert_allclose(found, digits_network.probabilities(digits_network.load(), images), atol=1e-5)


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
    model = triton_model("kernels.serving.engines:virtual", per_batch=0, per_sample=0)
    monkeypatch.setattr(model._engine, "predict", lambda batch: batch[:0])
    found = model.execute([request(np.zeros((1, 4), np.float32)), request(np.zeros((2, 4), np.float32))])
    assert all("the engine failed: the engine virtual engine answered a batch of 3" in r.error for r in found)
