# tries: sends SIGKILL and SIGTERM to its parents and to every process it can
# expects: student_crash 0 0 0 0
# word: ended
import os
import signal

for number in (signal.SIGTERM, signal.SIGKILL):
    for pid in [os.getppid(), 1, *(int(name) for name in os.listdir("/proc") if name.isdigit())]:
        if pid not in (0, os.getpid()):
            try:
                os.kill(pid, number)
            except OSError:
                pass
if os.geteuid():
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass
os._exit(0)
