"""TensorFlow's start-up, in processes of its own: what one process has set up, it cannot set up differently."""

import subprocess
import sys

import pytest

from warpcourse.bench.tensorflow_start import start

SET_UP = """
import os, sys
from warpcourse.bench.tensorflow_start import start
tf = start(devices=2, threads=3)
assert tf.keras.layers and "sklearn" not in sys.modules  # Keras would take a second for it
import sklearn
assert start(devices=2, threads=3) is tf is start(threads=3)
assert [d.name for d in tf.config.list_logical_devices('CPU')] == ['/device:CPU:0', '/device:CPU:1']
assert tf.config.threading.get_intra_op_parallelism_threads() == 3
assert os.environ['TF_ENABLE_ONEDNN_OPTS'] == '0'
float(tf.reduce_sum(tf.ones(3)))
assert start(devices=2, threads=3) is tf
"""
LATE = """
import tensorflow as tf
tf.ones(3)
from warpcourse.bench.tensorflow_start import start
try:
    start()
except RuntimeError as error:
    assert 'restart the kernel' in str(error), error
else:
    raise SystemExit('nothing was said')
"""


@pytest.mark.parametrize("script", [SET_UP, LATE], ids=["set-up", "late"])
def test_in_a_process_of_its_own(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_device_is_refused():
    with pytest.raises(ValueError, match="devices is 0; TensorFlow needs at least 1"):
        start(devices=0)
