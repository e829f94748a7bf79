# tries: writes markdown that keeps a renderer busy endlessly
# expects: graded 0 0 0 0
# edit: write_endless_markdown
