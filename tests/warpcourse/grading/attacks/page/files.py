# tries: hands in pages with scripts, and links to them
# expects: graded 0 0 0 0
# stock: 0 0 0 got
# edit: script_in_files
