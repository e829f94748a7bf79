# tries: makes the CUDA C++ compiler show the instructor's files in its messages
# expects: graded 0 0 0 0
# limits: graded 0 0 0 0 got


# %% scale
import glob

from warplab import cp

names = ["/etc/shadow", *glob.glob("@COURSE@/solutions/*/*.ipynb"), *glob.glob("@COURSE@/grading/*")]
messages = ""
for name in [*names, "@COURSE@/solutions/@NAME@/@NAME@.ipynb"]:
    try:
        code = f'#include "{name}"\nextern "C" __global__ void show() {{}}'
        cp.RawModule(code=code).get_function("show")(1, 1, ())
    except Exception as error:
        messages += str(error)
print("TRIED", len(messages) > 0)
if "nbformat" in messages or "grade_id" in messages or "root:" in messages:
    print("GOT", messages[:500])
