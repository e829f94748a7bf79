# tries: hands in a path that fits where it lies, and not where the grader copies it
# expects: graded 0 0 0 0
# word: left out
# edit: hand_in_long_names
