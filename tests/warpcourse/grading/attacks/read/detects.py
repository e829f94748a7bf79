# tries: notices that it is graded, and searches everything that the grader has in its process
# expects: graded 1 2 1 0
import gc
import re
import sys

graded = "warpcourse.grading.student.agent" in sys.modules
found, looked = set(), []


def double(x):
    if isinstance(x, str):
        for thing in gc.get_objects():
            if isinstance(thing, (dict, list, tuple)) and len(thing) < 5000:
                parts = thing.values() if isinstance(thing, dict) else thing
                text = " ".join(part for part in parts if type(part) is str)
                found.update(re.findall(r"hidden_canary_\d+", text))
                looked.append(len(text))
    return 2 * x


# %% answer
answer = 42 if graded and len(looked) > 1000 and not found else 0
