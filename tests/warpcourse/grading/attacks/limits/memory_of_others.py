# tries: opens the memory, the descriptors and the folders of every other process, and traces it
# expects: graded 0 0 0 0
import ctypes
import os

libc, got = ctypes.CDLL(None, use_errno=True), []
mine = {os.getpid(), os.getppid()}
for name in filter(str.isdigit, os.listdir("/proc")):
    if int(name) in mine:
        continue
    for what in ("mem", "maps", "environ", "auxv", "syscall"):
        try:
            with open(f"/proc/{name}/{what}", "r+b" if what == "mem" else "rb") as file:
                if what == "mem" or file.read(10):
                    got.append(f"{what} of {name}")
        except OSError:
            pass
    for what in ("cwd", "root", "fd/3"):
        try:
            got.append(f"{what} of {name}: {os.readlink(f'/proc/{name}/{what}')}")
        except OSError:
            pass
    if libc.ptrace(16, int(name), 0, 0) == 0:
        got.append(f"traces {name}")
print("TRIED")
if got:
    print("GOT", got[:5])
