# tries: endless output, past the point where notebooks keep it
# expects: limit 0 0 0 0
# tight: yes
kernel = get_ipython().kernel
content = {"name": "stdout", "text": "x" * (1 << 20)}
while True:
    try:
        kernel.session.send(kernel.iopub_socket, "stream", content, ident=b"stream")
    except BaseException:
        pass
