"""PTX text as data: the program, the parser, the inlining of calls."""
