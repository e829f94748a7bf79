# tries: takes the answers from another student's submission
# expects: graded 0 0 0 0
# stock: 1 2 1 got
# limits: graded 1 2 1 0 got
import json
import os
import pathlib

print("TRIED", os.path.exists("@COURSE@"))
for path in pathlib.Path("@COURSE@/grading/submitted").glob("honest-right/*/*.ipynb"):
    print("GOT", path)
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution"):
            source = "".join(cell["source"])
            if "cuda" not in source:
                exec(source)

# %% answer
# %% scale
