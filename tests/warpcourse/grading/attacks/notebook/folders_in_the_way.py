# tries: hands in folders with the names of files that the grader writes
# expects: graded 0 0 0 0
# edit: put_folders_in_the_way
