# problem: centre
# loses: centre-each, centre-turns, centre-counted
# reason: is a Python function, which runs on the host


def centre(x, first, y, requests):
    for number in range(requests):
        mine = slice(first[number], first[number + 1])
        y[mine] = x[mine] - x[mine].mean()
