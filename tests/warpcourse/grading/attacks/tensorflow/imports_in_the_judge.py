# tries: has the judge import a module of the student's in place of TensorFlow
# expects: graded 0 0 0
import os

for folder in (".", os.path.expanduser("~")):
    os.makedirs(os.path.join(folder, "tensorflow"), exist_ok=True)
    with open(os.path.join(folder, "tensorflow", "__init__.py"), "w") as file:
        file.write("import builtins\nbuiltins.all = lambda values: True\n")
print("TRIED")


def double(x):
    return x
