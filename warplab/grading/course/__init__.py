"""The class: submissions, ledger, gradebook, workers, feedback."""
