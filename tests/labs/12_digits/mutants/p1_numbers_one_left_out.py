# problem: numbers
# loses: numbers-right
# reason: no number yet for 'seconds left'
prediction = {
    "nothing known": math.log(10),
    "softmax twice": math.log(1 + 9 / math.e),
    "steps": 1800,
    "standard error": 100 * math.sqrt(0.975 * 0.025 / 360),
}
