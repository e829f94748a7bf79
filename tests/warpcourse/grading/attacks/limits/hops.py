# tries: flees from process to process, faster than anybody lists them, in new sessions, after its notebook has ended
# expects: student_crash 0 0 0 0
import ctypes
import os
import signal
import time

if os.fork() == 0:
    os.setsid()
    ctypes.CDLL(None).prctl(15, b"warplab-attack", 0, 0, 0)
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if os.fork():
                os._exit(0)
        except OSError:
            continue
        os.setsid()
    os._exit(0)
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGKILL)
