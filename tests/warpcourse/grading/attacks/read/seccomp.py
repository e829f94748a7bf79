# tries: asks Linux for what reaches beyond a process: rings, watchers, other processes' descriptors, secret memory
# expects: graded 0 0 0 0
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(4096)
calls = {
    "io_uring_setup": (425, 8, buffer),
    "perf_event_open": (298, buffer, -1, 0, -1, 0),
    "userfaultfd": (323, 0),
    "bpf": (321, 0, buffer, 120),
    "fanotify_init": (300, 0, 0),
    "open_by_handle_at": (304, -100, buffer, 0),
    "process_madvise": (440, 3, buffer, 1, 21, 0),
    "ptrace": (101, 16, os.getppid(), 0, 0),
    "kcmp": (312, os.getpid(), os.getppid(), 0, 0, 0),
    "unshare": (272, 0x10000000),
    "setns": (308, 3, 0),
    "move_mount": (429, -100, buffer, -100, buffer, 0),
    "landlock_create_ruleset": (444, None, 0, 0),
}
told = [name for name, call in calls.items() if libc.syscall(*call) >= 0]
for pid in filter(str.isdigit, os.listdir("/proc")):
    pidfd = libc.syscall(434, int(pid), 0)
    if pidfd >= 0:
        told += [f"pidfd_getfd {pid}" for fd in range(9) if libc.syscall(438, pidfd, fd, 0) >= 0]
print("GOT" if set(told) - {"landlock_create_ruleset"} else "TRIED", told)


def double(x):
    return x
