# tries: a loop without end that ignores every signal, after a right answer
# expects: timeout 1 2 0 0
# tight: cell 2
# word: longer than|did not stop
def double(x):
    return 2 * x


# %% answer
import signal

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
