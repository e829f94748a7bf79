# tries: sends errors and results whose names, lines and kinds are HTML, colours and scripts of its own
# expects: graded 0 0 0 0
def double(x):
    return x


# %% own
script = "</pre><img src=none onerror=\"document.documentElement.setAttribute('data-script-of-a-student', 'ran')\">"
colours = "".join(f"\x1b[{n % 110};38;2;{n % 256};0;0m{script}" for n in range(300))
kernel = get_ipython().kernel
for content in (
    {"ename": script, "evalue": script, "traceback": [colours, script, "\x1b]8;;javascript:alert(1)\x07link"]},
    {"ename": colours, "evalue": colours * 10, "traceback": [script] * 1000},
):
    kernel.session.send(kernel.iopub_socket, "error", content, parent=kernel.get_parent())
