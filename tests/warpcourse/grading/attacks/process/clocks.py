# tries: sets the clock and the name of the machine, which due dates and neighbours go by
# expects: graded 0 0 0 0
import ctypes
import socket
import time

got = []
for what, attempt in {
    "clock": lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
    "name": lambda: socket.sethostname("evil"),
}.items():
    try:
        attempt()
        got.append(what)
    except OSError:
        pass
libc, change = ctypes.CDLL(None), ctypes.create_string_buffer(256)
change[0:4] = (0x2).to_bytes(4, "little")  # ADJ_FREQUENCY
if libc.adjtimex(change) >= 0:
    got.append("frequency")
print("TRIED")
if got:
    print("GOT", got)


def double(x):
    return x
