# tries: kills itself with SIGKILL in the middle of a hidden test
# expects: student_crash 1 0 0 0
# word: ended
import os
import signal


def double(x):
    if isinstance(x, str):
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * x
