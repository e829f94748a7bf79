# tries: reads whatever descriptors its process was started with, and those of its parents
# expects: graded 0 0 0 0
import os
import stat

got = []
for process in ("self", "1", str(os.getppid())):
    try:
        numbers = os.listdir(f"/proc/{process}/fd")
    except OSError:
        continue
    for number in numbers:
        try:
            path = os.readlink(f"/proc/{process}/fd/{number}")
            again = os.open(f"/proc/{process}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        if stat.S_ISREG(os.fstat(again).st_mode) and b"91_target" in os.read(again, 1 << 20):
            got.append(path)
        if stat.S_ISDIR(os.fstat(again).st_mode) and os.path.exists(f"/proc/self/fd/{again}/../solutions"):
            got.append(path)
        os.close(again)
print("TRIED")
if got:
    print("GOT", got)


def double(x):
    return x
