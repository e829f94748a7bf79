"""System calls for namespaces, mounts, capabilities and a filter of system calls.

By ctypes, because neither Python 3.11 nor a package that the course installs has functions for them.

Sources: the Linux manual pages unshare(2), mount(2), prctl(2), capset(2), seccomp(2), netdevice(7); numbers from the
kernel's headers (uapi/linux/sched.h, mount.h, prctl.h, capability.h, seccomp.h, audit.h; asm/unistd.h).
"""

import ctypes
import errno
import fcntl
import os
import platform
import signal
import socket
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_CLONE_NEW_ANY = 0x7E020080  # the above, NEWCGROUP and NEWTIME

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4

_CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_READ_SEARCH = 2

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_KEYCTL_JOIN_SESSION_KEYRING = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]


def _checked(result: int, what: str) -> None:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    kind_, data_ = (text.encode() if text is not None else None for text in (kind, data))
    _checked(_libc.mount(source.encode(), target.encode(), kind_, flags, data_), f"mount {target}")


def unmount(target: str) -> None:
    _checked(_libc.umount2(target.encode(), _MNT_DETACH), f"umount {target}")


def _prctl(option: int, *values: int) -> None:
    _checked(_libc.prctl(option, *values, *[0] * (4 - len(values))), f"prctl {option}")


def set_dumpable(value: bool) -> None:
    """Set whether other processes of the same user can trace this one and read its entries in /proc."""
    _prctl(_PR_SET_DUMPABLE, int(value))


def die_with_parent(parent: int) -> None:
    """Let Linux kill this process when its parent ends; end it now if `parent` is its parent no more.

    Linux forgets this when the process becomes another user.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(70)


def become_subreaper() -> None:
    """Make orphaned descendants children of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def leave_session_keyring() -> None:
    """Take a new, empty keyring: the inherited one may hold the keys of whoever started the grading."""
    if _MACHINE is not None:
        _libc.syscall(_KEYCTL[_MACHINE[0]], _KEYCTL_JOIN_SESSION_KEYRING, None)  # fails on kernels without keyrings


def become(uid: int, keep: tuple[int, ...] = ()) -> None:
    """Change from root to user and group `uid`, without supplementary groups, and keep only the capabilities `keep`."""
    _prctl(_PR_SET_KEEPCAPS, int(bool(keep)))
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    _set_capabilities(keep)


def drop_capabilities() -> None:
    """Give up every capability, including those that a later program could gain."""
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == -1:
            break  # past the last one, or not permitted: then no_new_privileges keeps any from being gained
    _set_capabilities(())


def _set_capabilities(kept: tuple[int, ...]) -> None:
    low = sum(1 << capability for capability in kept)
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, struct.pack("<6I", low, low, 0, 0, 0, 0)), "capset")


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(probe, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def mount_points() -> list[str]:
    """Return all mount points, in the order of mounting."""
    with open("/proc/self/mountinfo") as file:
        return [line.split()[4].encode().decode("unicode_escape") for line in file]


# Numbers of system calls on x86-64 and AArch64 (None: does not exist). No notebook needs these: they reach other
# processes, keys, mounts and namespaces, widen the attack surface of Linux, or take memory that no limit counts.
_REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262), "modify_ldt": (154, None),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89),
    "syslog": (103, 116), "iopl": (172, None), "ioperm": (173, None), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # Of these all programs of the machine share a number that no namespace divides.
    "io_setup": (206, 0), "inotify_init": (253, None), "inotify_init1": (294, 26),
}  # fmt: skip
_SOCKET, _CLONE, _CLONE3, _KEYCTL = (41, 198), (56, 220), (435, 435), (250, 219)
_MMAP, _SETSOCKOPT = (9, 222), (54, 208)
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
# Of SOL_SOCKET: SO_SNDBUF, SO_RCVBUF and the two that may pass the system's limit.
_BUFFER_OPTIONS = (7, 8, 32, 33)
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # index into the pairs above, AUDIT_ARCH_*
_MACHINE = _MACHINES.get(platform.machine())
_X32_BIT = 0x40000000

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; arguments have 8 bytes
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000

# AF_VSOCK, for example, reaches a virtual machine's host from any network namespace.
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


def can_filter() -> bool:
    return _MACHINE is not None


def filter_system_calls() -> None:
    """Refuse the calls above, new namespaces, and sockets of other families, for this process and its descendants.

    Also shared memory without a file, which stays when no process has it in its own memory any more, and larger buffers
    of sockets: neither counts as the memory of any process.
    Call `no_new_privileges` first. Only where `can_filter`.
    """
    assert _MACHINE is not None
    place, architecture = _MACHINE
    steps: list[tuple[int, int, int, int]] = []

    def unless_equal(value: int, skip: int) -> tuple[int, int, int, int]:
        return (_JUMP_EQUAL, 0, skip, value)

    def error(number: int) -> tuple[int, int, int, int]:
        return (_RETURN, 0, 0, _ERROR | number)

    steps += [(_LOAD, 0, 0, _ARCH), (_JUMP_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    steps += [(_LOAD, 0, 0, _NUMBER), (_JUMP_AT_LEAST, 0, 1, _X32_BIT), error(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        if (number := numbers[place]) is not None:
            steps += [unless_equal(number, 1), error(errno.EPERM)]
    # clone3 has its flags in memory, where a filter cannot look; refused, the C library falls back to clone.
    steps += [unless_equal(_CLONE3[place], 1), error(errno.ENOSYS)]
    steps += [unless_equal(_CLONE[place], 3), (_LOAD, 0, 0, _FIRST_ARGUMENT), (_JUMP_ANY_BIT, 0, 1, _CLONE_NEW_ANY)]
    steps += [error(errno.EPERM), (_LOAD, 0, 0, _NUMBER)]
    flags, level, option = (_FIRST_ARGUMENT + 8 * number for number in (3, 1, 2))
    steps += [unless_equal(_MMAP[place], 4), (_LOAD, 0, 0, flags), (_JUMP_ANY_BIT, 0, 2, _MAP_SHARED)]
    steps += [(_JUMP_ANY_BIT, 0, 1, _MAP_ANONYMOUS), error(errno.EPERM), (_LOAD, 0, 0, _NUMBER)]
    steps += [unless_equal(_SETSOCKOPT[place], len(_BUFFER_OPTIONS) + 5), (_LOAD, 0, 0, level)]
    steps += [(_JUMP_EQUAL, 0, len(_BUFFER_OPTIONS) + 3, socket.SOL_SOCKET), (_LOAD, 0, 0, option)]
    steps += [(_JUMP_EQUAL, len(_BUFFER_OPTIONS) - at, 0, name) for at, name in enumerate(_BUFFER_OPTIONS)]
    steps += [(_JUMP_EQUAL, 1, 1, 0), error(errno.EPERM), (_LOAD, 0, 0, _NUMBER)]
    steps += [unless_equal(_SOCKET[place], len(_FAMILIES) + 2), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    steps += [(_JUMP_EQUAL, len(_FAMILIES) - at, 0, int(family)) for at, family in enumerate(_FAMILIES)]
    steps += [error(errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]

    program = b"".join(struct.pack("<HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(description, len(description))
    _prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(holder))
