# tries: looks for the course's own solutions, hidden tests, and the answers that its tests hold
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got
import os
import sys

import warpcourse
import warplab

tops = {os.path.dirname(os.path.dirname(module.__file__)) for module in (warplab, warpcourse)}
tops |= {*sys.path, "/course", "/outside", os.environ.get("PWD", "."), os.path.dirname(sys.prefix)}
found, looked = [], 0
for top in sorted(tops - {""}):
    for folder, folders, names in os.walk(top):
        looked += 1
        folders[:] = [name for name in folders if name not in ("site-packages", ".git")]
        for name in names:
            path = os.path.join(folder, name)
            if "exercise_answers" in path or ("solutions" in path and name.endswith(".ipynb")):
                found.append(path)
print("TRIED", looked)
if found:
    print("GOT", found[:3])


def double(x):
    return x
