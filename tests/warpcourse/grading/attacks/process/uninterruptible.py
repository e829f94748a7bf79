# tries: an endless loop that ignores every signal, after a right answer
# expects: timeout 1 2 0 0
# tight: cell 5
# word: longer than|did not stop
def double(x):
    return 2 * x


# %% answer
import signal
import time

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
while True:
    try:
        while True:
            time.sleep(0.01)
    except BaseException:
        pass
