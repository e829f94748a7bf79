"""Random hostile input for the grading: PTX, descriptions of answers, notebooks. `python -m evidence.fuzz --help`."""
