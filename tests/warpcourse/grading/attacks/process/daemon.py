# tries: leaves processes behind, and ends itself so that nobody looks
# expects: student_crash 0 0 0 0
import ctypes
import os
import signal
import time

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
        ctypes.CDLL(None).prctl(15, b"warplab-attack", 0, 0, 0)
        time.sleep(60)
        os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
