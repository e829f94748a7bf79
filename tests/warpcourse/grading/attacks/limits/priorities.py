# tries: runs before everybody else: by nice, real time, deadlines, the disk's priority, and by being spared when memory is short
# expects: graded 0 0 0 0
import ctypes
import os

got, libc = [], ctypes.CDLL(None)
before = os.getpriority(os.PRIO_PROCESS, 0)
for what, attempt in {
    "nice": lambda: os.nice(-5),
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    "round robin": lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)),
    "oom": lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1"),
}.items():
    try:
        attempt()
        got.append(what)
    except OSError:
        pass
if libc.syscall(251, 1, 0, 1 << 13 | 4) == 0:  # ioprio_set, real time
    got.append("disk")
if os.getpriority(os.PRIO_PROCESS, 0) < before:
    got.append("lower")
print("TRIED")
if got:
    print("GOT", got)
