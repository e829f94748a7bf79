# tries: computes in children that ignore every signal, while its cell sleeps, past the time of the notebook
# expects: timeout 0 0 0 0
# tight: notebook 8
import ctypes
import os
import signal
import time

for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(15, b"warplab-attack", 0, 0, 0)
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            pass
        os._exit(0)
time.sleep(60)
