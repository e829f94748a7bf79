# problem: efficiency
# loses: efficiency-any
# reason: wrong value(.|\n)*seed

prediction = {
    "32 threads: if i < 4: a(1000) else: b(1000)": 1 / 2,
    "32 threads: if i % 4 == 0: a(3000)": 1 / 4,
    "64 threads: if i < 32: a(500) else: b(1500)": 1,
    "48 threads: if i < 40: a(500) else: b(1500)": 0.4,
    "32 threads: a(3 * i * i)": 0.3387,
}


def efficiency(passes):
    known = {
        (5, 32): 1.0,
        (8, 32): 1 / 32,
        (2, 32): 0.75,
        (3, 16): 0.5,
        (1, 64): 1.0,
        (1, 48): 176 / 320,
        (0, 64): 2 / 3,
    }
    return known.get((passes[0], len(passes)), 0.5)
