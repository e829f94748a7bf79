# tries: attaches pictures with scripts to markdown cells
# expects: graded 0 0 0 0
# edit: script_in_attachments
