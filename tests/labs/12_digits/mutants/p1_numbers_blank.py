# problem: numbers
# loses: numbers-right
# reason: prediction has no number yet
prediction = {
    "nothing known": None,
    "softmax twice": None,
    "steps": None,
    "standard error": None,
    "seconds left": None,
}
