# tries: hands in folders nested deeper than a path may be long
# expects: graded 0 0 0 0
# word: left out
# edit: hand_in_deep_folders
