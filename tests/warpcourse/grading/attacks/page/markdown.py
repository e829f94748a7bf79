# tries: puts scripts into markdown cells, in all ways that browsers run them
# expects: graded 0 0 0 0
# stock: 0 0 0 got
# edit: script_in_markdown
