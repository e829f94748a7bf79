# tries: drops the names of all cells, with tests and setup that are recognised by their text and do something else
# expects: graded 0 0 0 0
# word: lost the names
# edit: drop_names
