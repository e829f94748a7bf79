# tries: hands in a folder with the name of the notebook
# expects: student_crash 0 0 0 0
# word: is missing
# edit: hand_in_a_folder_as_notebook
