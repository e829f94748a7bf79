# tries: writes to its descriptors past IPython: into the grader's own terminal and log
# expects: graded 0 0 0 0
import faulthandler
import os

print("TRIED", flush=True)  # first: what comes late in a flood is cut
line = b"\x1b[2J\x1b]0;evil\x07 honest-right: 6 of 6\r\n" * 1000
for number in (1, 2):
    try:
        os.write(number, line)
    except OSError:
        pass
faulthandler.dump_traceback(file=2)


def double(x):
    return x
