# tries: writes results when its process ends: at exit, from threads, signal handlers, finalizers and a forked child
# expects: graded 0 0 0 0
import atexit
import gc
import os
import signal
import threading
import time

kernel = get_ipython().kernel


def results(*_):
    for points in ("4.0", "1000"):
        for kind, content in (
            ("execute_result", {"data": {"text/plain": points}, "metadata": {}, "execution_count": 1}),
            ("execute_reply", {"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []}),
        ):
            for socket in (kernel.iopub_socket, kernel.shell_stream, kernel.control_stream):
                kernel.session.send(socket, kind, content, parent=kernel.get_parent())


class Late:
    def __del__(self):
        results()


def later():
    threading.main_thread().join(60)
    results()


late = Late()
late.itself = late
gc.disable()
atexit.register(results)
os.register_at_fork(after_in_child=results)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1):
    signal.signal(number, results)
signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
threading.Thread(target=later, daemon=False).start()
if os.fork() == 0:
    time.sleep(20)
    results()
    os._exit(0)


def double(x):
    return x
