# tries: takes the whole machine's asynchronous I/O, and its watches of files
# expects: graded 0 0 0 0
# %% own
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
queue = ctypes.c_ulong()
got = []
if os.uname().machine == "x86_64":
    got += ["io_setup"] if libc.syscall(206, 1, ctypes.byref(queue)) == 0 else []
    got += ["inotify_init"] if libc.syscall(253) >= 0 else []
    got += ["inotify_init1"] if libc.syscall(294, 0) >= 0 else []
print("GOT" if got else "TRIED", got)


# %% double
def double(x):
    return x
