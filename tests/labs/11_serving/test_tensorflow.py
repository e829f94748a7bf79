"""Lab 11 serves what Keras exports, behind the same interface: the same requests, the same answers."""

import json
import subprocess
import sys

import numpy as np
import pytest

from kernels.serving.serve.engines import digits_network
from kernels.serving.serve.service.process import Refused, start

ENGINE = "kernels.serving.serve.engines.saved_model:engine"
# In a process of its own, since TensorFlow takes 0.6 GB and stays in the process that imported it.
EXPORT = """
import json, shutil, sys
from pathlib import Path
import keras
from kernels.serving.serve import engines
from kernels.serving.serve.engines import saved_model

folder = Path(sys.argv[1])
saved_model.keras_digits().export(folder / "digits", verbose=False)
shutil.copytree(folder / "digits", folder / "graph")
(folder / "graph" / "saved_model.pb").write_bytes(b"no graph")
shutil.copytree(folder / "digits", folder / "weights")
(folder / "weights" / "variables" / "variables.index").write_bytes(b"no weights")
x = keras.Input((None, 2))
keras.Model(x, keras.layers.ReLU()(x)).export(folder / "any_length", verbose=False)
x = keras.Input((2,))
keras.Model(x, [x + 1, x + 2]).export(folder / "two", verbose=False)
refused = {}
for name in ("graph", "weights", "any_length", "two", "nothing"):
    try:
        engines.make("kernels.serving.serve.engines.saved_model:engine", path=str(folder / name))
    except engines.EngineError as error:
        refused[name] = str(error)
print(json.dumps(refused))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """(folder, what was refused and why)"""
    folder = tmp_path_factory.mktemp("exported")
    done = subprocess.run([sys.executable, "-c", EXPORT, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_the_exported_network_answers_as_the_one_in_numpy(exported):
    images = digits_network.digits()[2][:20]
    expected = digits_network.probabilities(digits_network.load(), images)
    with start(ENGINE, options={"path": str(exported[0] / "digits")}) as service:
        np.testing.assert_allclose(service.ask(images), expected, atol=1e-5)
        with pytest.raises(Refused, match=r"422: instances\[0\] is a list of 8"):
            service.ask(images[0])
        assert service.stop()["answered"] == 20


def test_what_cannot_be_served_says_why(exported):
    refused = exported[1]
    for name, message in {
        "graph": "graph holds no SavedModel that can be loaded (",
        "weights": "weights holds no SavedModel that can be loaded (",
        "any_length": "is float32 of shape (None, None, 2); it must be float32 with a free batch",
        "two": "two has 1 inputs and 2 outputs; this engine takes one each",
        "nothing": "nothing is no folder with a SavedModel: Keras writes one by model.export(",
    }.items():
        assert message in refused.get(name, "not refused"), name
