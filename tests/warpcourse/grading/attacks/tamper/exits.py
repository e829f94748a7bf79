# tries: answers right, and ends its process before the tests
# expects: student_crash 0 0 0 0
# stock: none
# word: ended
import os


def double(x):
    return 2 * x


os._exit(0)
