# problem: numbers
# loses: numbers-right
# reason: wrong for 1 of 5: 'steps'
prediction = {
    "nothing known": math.log(10),
    "softmax twice": math.log(1 + 9 / math.e),
    "steps": 40 * 57,
    "standard error": 100 * math.sqrt(0.975 * 0.025 / 360),
    "seconds left": 60,
}
