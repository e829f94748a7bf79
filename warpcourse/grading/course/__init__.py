"""Grading of a whole class: submissions, ledger, gradebook, workers, feedback."""
