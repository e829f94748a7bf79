# tries: hands in metadata of a few MB that take up gigabytes when they are read
# expects: limit 0 0 0 0
# word: cannot be read
# edit: hand_in_vast_metadata
