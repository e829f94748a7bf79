# tries: takes timers, locks and watches without end, each of which takes memory of Linux's own
# expects: graded 0 0 0 0
import ctypes
import fcntl
import select

libc = ctypes.CDLL(None, use_errno=True)
timers, timer = 0, ctypes.c_void_p()
while timers < 200_000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    timers += 1
lock = open("lock", "w")  # noqa: SIM115
for place in range(0, 20_000, 2):
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
watches = []
try:
    while len(watches) < 100_000:
        watches.append(select.epoll())
except OSError:
    pass
count = len(watches)
for watch in watches:
    watch.close()
print("TRIED", timers, count)
if max(timers, count) >= 100_000:
    print("GOT")


def double(x):
    return x
