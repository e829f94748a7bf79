# tries: sleeps and wakes in many threads, so that its clock seems to stand still while it waits
# expects: timeout 1 2 0 0
# tight: notebook 8
def double(x):
    return x * 2


# %% own
import threading
import time


def work():
    while True:
        sum(range(1000))
        time.sleep(0)


for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(10_000)
