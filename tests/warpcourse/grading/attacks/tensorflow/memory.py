# tries: takes 128 GiB of memory by tf.zeros
# expects: graded 0 0 0
# tight: yes
try:
    whole = tf.zeros((1 << 20, 1 << 15))
    print("GOT 128 GiB")
except BaseException as error:
    print("TRIED", type(error).__name__)
