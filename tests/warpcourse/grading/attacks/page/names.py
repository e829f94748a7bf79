# tries: gives files names that become links to scripts in the grader's own note
# expects: graded 0 0 0 0
# edit: script_in_names
