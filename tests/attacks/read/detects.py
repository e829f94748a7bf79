# tries: notices that it is graded, and turns everything inside out that the grader has in its process
# expects: graded 0 0 0 0
import gc
import re
import sys

graded = "warplab.grading.agent" in sys.modules
found = set()


def double(x):
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)) and len(thing) < 5000:
            text = " ".join(
                part for part in (thing.values() if isinstance(thing, dict) else thing) if type(part) is str
            )
            found.update(re.findall(r"hidden_canary_\d+", text))
    return x


# %% own
print("TRIED", graded)
if found:
    print("GOT", found)
