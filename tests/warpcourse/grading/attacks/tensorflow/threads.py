# tries: hundreds of threads, through pools of tf.data that it keeps
# expects: student_crash 0 0 0
# tight: yes
import os

print("TRIED", flush=True)
kept = []
for _ in range(20):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 16
    data = iter(tf.data.Dataset.range(64).map(lambda i: i, num_parallel_calls=16).with_options(options))
    next(data)
    kept.append(data)
    if len(os.listdir("/proc/self/task")) > 24 + 64:
        print("GOT more than the limit")
        break
