# tries: keeps memory in what belongs to no process: message queues, semaphores, keys, files without names
# expects: graded 0 0 0 0
import ctypes
import os

libc, got = ctypes.CDLL(None, use_errno=True), []
if os.uname().machine == "x86_64":
    key = ctypes.c_char_p(b"user"), ctypes.c_char_p(b"evil"), ctypes.c_char_p(b"x" * 1000), 1000
    calls = {
        "mq_open": (240, b"/evil", 0o102, 0o600, None),
        "msgget": (68, 0, 0o1600),
        "semget": (64, 0, 32_000, 0o1600),
        "shmget": (29, 0, 1 << 20, 0o1600),
        "memfd_create": (319, b"evil", 0),
        "add_key": (248, *key, -4),
        "userfaultfd": (323, 0),
        "io_uring_setup": (425, 4096, ctypes.create_string_buffer(256)),
        "bpf": (321, 0, ctypes.create_string_buffer(128), 128),
        "perf_event_open": (298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
    }
    got = [name for name, call in calls.items() if libc.syscall(*call) >= 0]
print("TRIED")
if got:
    print("GOT", got)


def double(x):
    return x
