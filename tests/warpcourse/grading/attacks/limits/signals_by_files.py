# tries: has Linux send signals to every other process, as the owner of a pipe that it writes to
# expects: graded 0 0 0 0
import fcntl
import os
import signal
import time

pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (os.getpid(), os.getppid())]
reached = 0
for pid in pids:
    read, write = os.pipe()
    try:
        fcntl.fcntl(read, fcntl.F_SETOWN, pid)
        fcntl.fcntl(read, 10, int(signal.SIGKILL))  # F_SETSIG
        fcntl.fcntl(read, fcntl.F_SETFL, fcntl.fcntl(read, fcntl.F_GETFL) | os.O_ASYNC)
        os.write(write, b"x")
        reached += 1
    except OSError:
        pass
    finally:
        os.close(read)
        os.close(write)
time.sleep(0.5)
print("TRIED", reached > 0)
