# tries: starts more processes than it may, in sessions of their own, and more threads in each
# expects: graded 0 0 0 0
# tight: yes
import os
import threading
import time

children, threads = [], 0
for _ in range(200):
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        os.setsid()
        time.sleep(20)
        os._exit(0)
    children.append(child)
for _ in range(200):
    try:
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    except RuntimeError:
        break
    threads += 1
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
print("TRIED", len(children), threads)
if len(children) + threads > 64:
    print("GOT", len(children), "processes and", threads, "threads")
