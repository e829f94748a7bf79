# tries: becomes root: by programs that run as root for everybody, by files with capabilities, and by its user's groups
# expects: graded 0 0 0 0
import glob
import os
import stat
import subprocess

found, got = [], []
for folder in ("/bin", "/usr/bin", "/usr/sbin", "/sbin", "/usr/lib/openssh", "/usr/lib/dbus-1.0"):
    for path in glob.glob(f"{folder}/*"):
        try:
            if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID) and os.path.isfile(path):
                found.append(path)
        except OSError:
            pass
for call in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0)):
    try:
        call()
        got.append("a user or group")
    except OSError:
        pass
for command in (
    ["su", "-c", "id -u"],
    ["sudo", "-n", "id", "-u"],
    ["mount", "--bind", "/", "/mnt"],
    ["newgrp", "root"],
):
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        continue
    if ran.stdout.strip() == "0" or (command[0] == "mount" and ran.returncode == 0):
        got.append(command[0])
with open("/proc/self/status") as status:
    if "NoNewPrivs:\t1" not in status.read():
        got.append("new privileges")
print("TRIED", len(found))
if got:
    print("GOT", got)
