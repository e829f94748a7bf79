# tries: leaves a thread of tf.data at work, and a process beside it, when its process ends
# expects: student_crash 1 2 0
import ctypes
import os
import time


def double(x):
    return 2 * x


# %% answer
def work(i):
    while True:
        time.sleep(0.01)


if os.fork() == 0:
    os.setsid()
    ctypes.CDLL(None).prctl(15, b"warplab-attack", 0, 0, 0)
    time.sleep(60)
    os._exit(0)
data = tf.data.Dataset.range(4).map(lambda i: tf.py_function(work, [i], tf.int64), num_parallel_calls=4).prefetch(4)
busy = iter(data)
os._exit(0)
