# tries: takes the answers from the instructor's notebook, whose path it knows
# expects: graded 0 0 0 0
# stock: 1 2 1 got
# limits: graded 1 2 1 0 got
import json
import pathlib

try:
    found = json.loads(next(pathlib.Path("@COURSE@/solutions").glob("*/*.ipynb")).read_text())
except (OSError, StopIteration):
    print("TRIED")
else:
    print("GOT the solution")
    for cell in found["cells"]:
        if cell["cell_type"] == "code" and cell["metadata"]["nbgrader"]["solution"]:
            source = "".join(cell["source"])
            if "cuda" not in source:
                exec(source)

# %% answer
# %% scale
