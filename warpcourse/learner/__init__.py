"""What the course keeps of a learner: predictions, tasks that are done, points; all in the learner's own folder.

`predictions` (`predict`, `compare`) and `attempts` (`attempt`) are for lessons, `record` is the file behind them, and
`form` what a prediction is typed into.
"""
