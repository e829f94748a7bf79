# tries: raises its own limits and lowers those of others, and starts programs that would do it
# expects: graded 0 0 0 0
import os
import resource
import subprocess

got = []
for name in ("CPU", "AS", "NPROC", "NOFILE", "FSIZE", "MEMLOCK", "CORE"):
    which = getattr(resource, f"RLIMIT_{name}")
    hard = resource.getrlimit(which)[1]
    for soft, wanted in ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), (hard, hard + 1)):
        try:
            resource.setrlimit(which, (soft, wanted))
            got.append(name)
        except (OSError, ValueError):
            pass
    for pid in {*map(int, filter(str.isdigit, os.listdir("/proc")))} - {os.getpid(), os.getppid()}:
        try:
            resource.prlimit(pid, which, (1, 1))
            got.append(f"{name} of {pid}")
        except OSError:
            pass
ran = subprocess.run(["/bin/sh", "-c", "ulimit -H -n unlimited; ulimit -n"], capture_output=True, text=True)
print("TRIED", ran.stdout)
if got or int(ran.stdout.strip() or 0) > 256:
    print("GOT", got, ran.stdout)
