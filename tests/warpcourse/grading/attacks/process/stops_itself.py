# tries: stops itself by SIGSTOP, which no interrupt ends, after a right answer
# expects: timeout 1 2 0 0
# tight: cell 4
def double(x):
    return x * 2


# %% own
import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
