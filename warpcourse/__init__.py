"""What a course and a class need beside the engine, warplab: lessons' records, benchmarks, exercises, grading.

It imports the engine; the engine finds the commands and the names of this package by its name, where it is installed.
"""

# What `from warplab import X` gives beside the engine's own names, and the module that defines it. A literal, because
# what a change touches is found by it (tests/support/changed_tests.py).
NAMES = {
    "attempt": "warpcourse.learner.attempts",
    "check": "warpcourse.desk.check_cell",
    "compare": "warpcourse.learner.predictions",
    "draw_cluster": "warpcourse.draw.cluster",
    "draw_halo": "warpcourse.draw.halo",
    "draw_look_back": "warpcourse.draw.look_back",
    "draw_machine": "warpcourse.draw.machine",
    "draw_mask": "warpcourse.draw.mask",
    "draw_number": "warpcourse.draw.number",
    "draw_outer_product": "warpcourse.draw.outer_product",
    "draw_rounds": "warpcourse.draw.rounds",
    "draw_stages": "warpcourse.draw.stages",
    "draw_sum_tree": "warpcourse.draw.sum_tree",
    "draw_tile_order": "warpcourse.draw.tile_order",
    "draw_zoom": "warpcourse.draw.zoom",
    "predict": "warpcourse.learner.predictions",
    "progress": "warpcourse.desk.progress_page",
}
