# tries: puts scripts into raw cells
# expects: graded 0 0 0 0
# edit: script_in_raw_cells
