# tries: puts scripts behind links in markdown cells
# expects: graded 0 0 0 0
# stock: 0 0 0 got
# edit: script_in_links
