# tries: reads hidden tests in the files around it
# expects: graded 0 0 0 0
# stock: 0 0 0 got
# limits: graded 0 0 0 0
import pathlib
import re

found = set()
for path in pathlib.Path().rglob("*"):
    if path.is_file():
        found.update(re.findall(rb"hidden_canary_\d+", path.read_bytes()))
print("TRIED", sorted(map(str, pathlib.Path().rglob("*"))))
if found:
    print("GOT", found)
