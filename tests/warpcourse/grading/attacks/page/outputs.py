# tries: displays scripts: as HTML, markdown, TeX, pictures, errors
# expects: graded 0 0 0 0
# stock: 0 0 0 got
# edit: script_in_outputs
