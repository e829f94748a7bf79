# tries: writes scores into its outputs: as results, displays, errors, and messages under other cells' names
# expects: graded 0 0 0 0
from IPython.display import publish_display_data

publish_display_data({"application/vnd.jupyter.widget-view+json": {}, "text/plain": "no widget"})
kernel = get_ipython().kernel
for points in ("4.0", "4", "1000"):
    publish_display_data({"text/plain": points, "application/vnd.warplab.answer": points})
    for kind, content in (
        ("execute_result", {"data": {"text/plain": points}, "metadata": {}, "execution_count": 1}),
        ("execute_reply", {"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []}),
        ("status", {"execution_state": "idle"}),
        ("stream", {"name": "stdout"}),
        ("error", {}),
    ):
        for parent in ({}, kernel.get_parent()):
            for socket in (kernel.iopub_socket, kernel.iopub_thread):
                kernel.session.send(socket, kind, content, parent=parent, ident=b"stream")


def double(x):
    kernel.session.send(
        kernel.iopub_socket,
        "execute_result",
        {"data": {"text/plain": "2.0"}, "metadata": {}, "execution_count": 1},
        parent=kernel.get_parent(),
    )
    return x


# %% answer
answer = 0
4.0
