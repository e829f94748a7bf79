# tries: writes into the machine's own log, its terminals and its settings
# expects: graded 0 0 0 0
import ctypes
import glob
import os

got = []
paths = ["/dev/kmsg", "/dev/tty", "/dev/console", "/dev/log", "/run/systemd/journal/socket", "/dev/tty0"]
paths += ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/sys/power/state"]
for path in (*paths, *glob.glob("/dev/pts/[0-9]*")):
    try:
        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), b"evil\n" if path.startswith("/dev") else b"")
        got.append(path)
    except OSError:
        pass
if ctypes.CDLL(None).klogctl(3, ctypes.create_string_buffer(4096), 4096) > 0:
    got.append("syslog")
print("TRIED")
if got:
    print("GOT", got)


def double(x):
    return x
