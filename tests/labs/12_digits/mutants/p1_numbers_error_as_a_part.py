# problem: numbers
# loses: numbers-right
# reason: wrong for 1 of 5: 'standard error'
prediction = {
    "nothing known": math.log(10),
    "softmax twice": math.log(1 + 9 / math.e),
    "steps": 1800,
    "standard error": math.sqrt(0.975 * 0.025 / 360),
    "seconds left": 60,
}
