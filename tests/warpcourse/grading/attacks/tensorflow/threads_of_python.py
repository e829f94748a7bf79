# tries: configures enormous pools, and starts threads that outlive their cell
# expects: graded 1 2 1
# tight: yes
import os
import threading
import time

for setting in (
    tf.config.threading.set_intra_op_parallelism_threads,
    tf.config.threading.set_inter_op_parallelism_threads,
):
    try:
        setting(10_000)
    except BaseException:
        pass
started = 0
try:
    for _ in range(10_000):
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
        started += 1
        if len(os.listdir("/proc/self/task")) > 88:
            break
except RuntimeError:
    pass
print("TRIED", started)
if len(os.listdir("/proc/self/task")) > 88:
    print("GOT", started)


def double(x):
    return 2 * x


# %% answer
answer = 42
