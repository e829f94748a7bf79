# tries: escapes from a graph by tf.py_function to look for the tests in this process and its parents
# expects: graded 0 0 0
import gc
import os
import sys


def look():
    found = [name for name in sys.modules if name.startswith("warpcourse.grading.judge.")]
    found += [text for text in gc.get_objects() if type(text) is dict and "HIDDEN TESTS" in text]
    for pid in (os.getppid(), 1):
        try:
            with open(f"/proc/{pid}/mem", "rb") as memory, open(f"/proc/{pid}/maps") as maps:
                memory.seek(int(maps.readline().split("-")[0], 16))
                found.append(len(memory.read(16)))
        except OSError:
            pass
    return len(found)


@tf.function
def graph():
    return tf.py_function(look, [], tf.int64)


found = int(graph())
print("TRIED")
if found:
    print("GOT", found)
