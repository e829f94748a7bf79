"""The hub's settings: hub/up names their places. Each user is an ordinary user of the machine, with a home."""

import os
import sys

root, exchange = os.environ["WARPLAB_HUB"], os.environ["WARPLAB_EXCHANGE"]

c = get_config()  # noqa: F821

# Names and passwords are the machine's (PAM). Whoever has an account may come in.
c.Authenticator.allow_all = True
c.JupyterHub.bind_url = os.environ.get("WARPLAB_HUB_URL", "http://127.0.0.1:8000")
c.JupyterHub.hub_port = int(os.environ.get("WARPLAB_HUB_PORT", "8081"))
state = os.path.join(root, "state")  # root's alone: cookies' secret, tokens
c.JupyterHub.db_url = f"sqlite:///{state}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = os.path.join(state, "cookie_secret")
c.ConfigurableHTTPProxy.command = [os.path.join(root, "node_modules", ".bin", "configurable-http-proxy")]
c.ConfigurableHTTPProxy.api_url = os.environ.get("WARPLAB_HUB_PROXY", "http://127.0.0.1:8082")
c.ConfigurableHTTPProxy.pid_file = os.path.join(state, "proxy.pid")
c.Spawner.cmd = [os.path.join(root, "course", "hub", "server")]
c.Spawner.default_url = "/lab/tree/warplab/progress.ipynb"
c.Spawner.environment = {"WARPLAB_HUB": root, "WARPLAB_BACKEND": "simulator", "OPENBLAS_NUM_THREADS": "1"}
c.Spawner.http_timeout = c.Spawner.start_timeout = 300  # a class that starts at once
c.JupyterHub.concurrent_spawn_limit = 30

# Ends servers that nobody has used for a while, with their kernels: each takes memory that others need.
idle = os.environ.get("WARPLAB_HUB_CULL", "3600")
c.JupyterHub.services = [
    {"name": "cull", "command": [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={idle}"]}
]
scopes = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
c.JupyterHub.load_roles = [{"name": "cull", "services": ["cull"], "scopes": scopes}]
