"""PTX text as data: the parser, the program, inlined calls."""
