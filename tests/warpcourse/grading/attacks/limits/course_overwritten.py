# tries: writes into the course, the interpreter and every folder that modules come from, for whoever is graded next
# expects: graded 0 0 0 0
import os
import sys

got = []
folders = {
    *filter(None, sys.path),
    sys.prefix,
    "@COURSE@",
    "@COURSE@/grading",
    "@COURSE@/solutions",
    "/etc",
    "/usr/lib",
}
for folder in sorted(folders):
    if folder.startswith(os.environ["TMPDIR"]) or not os.path.isdir(folder):
        continue
    path = os.path.join(folder, "warplab_attack.pth")
    try:
        with open(path, "x"):
            got.append(folder)
        os.unlink(path)
    except OSError:
        pass
    for name in ("sitecustomize.py", "warplab/__init__.py", "nbgrader_config.py"):
        if os.access(os.path.join(folder, name), os.W_OK):
            got.append(os.path.join(folder, name))
print("TRIED")
if got and os.geteuid():
    print("GOT", got[:5])
