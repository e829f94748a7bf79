# problem: numbers
# loses: numbers-right
# reason: wrong for 1 of 5: 'softmax twice'
prediction = {
    "nothing known": math.log(10),
    "softmax twice": 0.0,
    "steps": 1800,
    "standard error": 100 * math.sqrt(0.975 * 0.025 / 360),
    "seconds left": 60,
}
