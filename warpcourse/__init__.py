"""What a course and a class need beside the engine, warplab: lessons' records, benchmarks, exercises, grading.

It imports the engine; the engine finds the commands and the names of this package by its name, where it is installed.
"""

DRAWN = "cluster halo look_back machine mask number outer_product rounds stages sum_tree tile_order zoom".split()  # noqa: SIM905
# What `from warplab import X` gives beside the engine's own names, and the module that defines it.
NAMES = {
    "attempt": "warpcourse.learner.attempts",
    "check": "warpcourse.desk.check_cell",
    "compare": "warpcourse.learner.predictions",
    "predict": "warpcourse.learner.predictions",
    "progress": "warpcourse.desk.progress_page",
} | {f"draw_{name}": f"warpcourse.draw.{name}" for name in DRAWN}
