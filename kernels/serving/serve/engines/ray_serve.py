"""An engine in several replicas, on this machine or many, under Ray Serve: itself an engine, so any server takes it.

    python -m kernels.serving.serve --engine kernels.serving.serve.engines.ray_serve:replicas \\
        --option of=kernels.serving.serve.engines:digits --option replicas=2

    clients -> the service: queue, batches  -> Ray Serve: a replica that is idle -> the engine `of`, in its own process

Ray Serve starts the replicas, restarts those that die, and sends each batch to one that lives. A batch that a replica
had taken when it died is another matter: Ray Serve does not send it again, since it cannot know whether the work may be
done twice; the caller gets an error. Here it may: an engine keeps no state, and the answer is the same. So the caller
sends the batch again, and nothing that the service accepted is lost while it lives itself. What only the service knows,
its queue, dies with it: a request is safe from its death only if its client asks again.

Not sent again: what the engine refused or failed at, since another replica would too; and, after `ATTEMPTS`, a batch
whose replicas die each time, since the batch may be what kills them.

Source: Ray Serve, serve/_private/router.py of release 2.60 (requests that no replica has taken are routed again), and
docs.ray.io, Serve architecture and fault tolerance. Ray comes with `make setup-cluster`.
"""

import contextlib
import logging
import os
import re
import shutil
import signal
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from kernels.serving.serve import engines
from kernels.serving.serve.engines import EngineError
from warpcourse.processes.tree import descendants, processes

APPLICATION = "warplab"
ATTEMPTS = 5  # replicas that may die with the same batch
STARTS = 3  # tries to start a cluster
STORE_BYTES = 100 * 2**20  # of shared memory for what goes between processes


class Replica:
    """What runs in each replica: one engine, one batch at a time."""

    def __init__(self, of: str, options: dict[str, Any]) -> None:
        self._engine = engines.make(of, **options)
        engines.warm_up(self._engine)

    def about(self) -> tuple[str, tuple[int, ...]]:
        """Return the name and shape of the engine."""
        return self._engine.name, self._engine.shape

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        return engines.answer(self._engine, batch)


class Replicas:
    """The engine `of`, made with `options` in each of `replicas` processes; an engine for `replicas` batches at once.

    `retries`: batches that were sent again, as their replica had died. `address`: of a Ray cluster whose machines can
    import this course; None: one of its own, on this machine, which ends with `close()`. `cpus`, `gpus`: that Ray sets
    aside for each replica; without `gpus` it hides GPUs from them. EngineError where Ray is missing, or replicas cannot
    start; RuntimeError from `predict` for a batch that got no answer.
    """

    def __init__(
        self, of: str, replicas: int = 2, address: str | None = None, cpus: float = 0, gpus: float = 0, **options: Any
    ) -> None:
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 1:
            raise EngineError(f"replicas is {replicas!r}; it must be a whole number, 1 or more")
        if address is not None:
            _reachable(address)
        self._ray, self._serve = _ray()
        self._folder = _start(self._ray, address)
        self.at_once, self.retries, self._lock = replicas, 0, threading.Lock()
        try:
            self._handle = self._deploy(of, options, {"num_cpus": cpus, "num_gpus": gpus})
            self.name, self.shape = self._handle.about.remote().result()
        except BaseException:
            self.close()
            raise
        self.name = f"{self.name}, {replicas} replicas under Ray Serve"

    def predict(self, batch: np.ndarray) -> np.ndarray:
        """Return the engine's answer from any replica; from another one if that dies over it."""
        for _ in range(ATTEMPTS):
            try:
                return self._handle.remote(batch).result()
            except self._lost() as error:
                last = error
                with self._lock:
                    self.retries += 1
            except self._ray.exceptions.RayTaskError as error:  # the engine's own, with a traceback that is no client's
                raise RuntimeError(_reason(str(error))) from error
        raise RuntimeError(f"{ATTEMPTS} replicas died over this batch, which may be what kills them") from last

    def kill(self) -> int:
        """Kill the process of a replica on this machine, and return its number. RuntimeError if there is none."""
        living = pids(os.getpid())
        if not living:
            raise RuntimeError("no replica of this process runs on this machine")
        os.kill(living[0], signal.SIGKILL)
        return living[0]

    def close(self) -> None:
        """End the replicas, and the cluster if it is its own."""
        if not self._ray.is_initialized():
            return
        if not self._folder:
            self._serve.delete(APPLICATION)
        self._ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _deploy(self, of: str, options: dict[str, Any], needs: dict[str, float]) -> Any:
        # Only the service speaks HTTP, so Ray Serve's own server of it is not started.
        self._serve.start(http_options={"location": "NoServer"}, logging_config={"log_level": "ERROR"})
        deployment = self._serve.deployment(Replica).options(
            num_replicas=self.at_once,
            max_ongoing_requests=1,  # a replica that is busy gets no second batch: an idle one is quicker
            max_constructor_retry_count=self.at_once,
            health_check_period_s=1,  # until a dead replica is noticed, and another one started
            ray_actor_options=needs,
        )
        try:
            return self._serve.run(deployment.bind(of, options), name=APPLICATION, route_prefix=None)
        except RuntimeError as error:  # which does not say what went wrong in the replicas; their status does
            states = self._serve.status().applications[APPLICATION].deployments.values()
            reason = _reason("\n".join(state.message for state in states))
            raise EngineError(f"replicas of {of!r} cannot start: {reason or error}") from error

    def _lost(self) -> tuple[type[Exception], ...]:
        """Return the errors that say that the replica is gone, and nothing of the batch."""
        e = self._ray.exceptions
        return e.RayActorError, e.WorkerCrashedError, e.NodeDiedError, e.ObjectLostError


def replicas(of: str, **options: Any) -> Replicas:
    """Return `Replicas` of the engine called `of`; options that are not those of `Replicas` are the engine's."""
    return Replicas(of, **options)


def pids(service: int) -> list[int]:
    """Return process numbers of the replicas on this machine that belong to the service with this one: whom to kill."""
    found = []
    for pid in descendants(service, processes()):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"ray::ServeReplica:{APPLICATION}:".encode()):
                found.append(pid)
    return sorted(found)


def _ray() -> tuple[Any, Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray would report how it is used; read at its start
    try:
        import ray
        from ray import serve
    except ImportError as error:
        raise EngineError("Ray is not installed, which replicas need: run make setup-cluster") from error
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    return ray, serve


def _start(ray: Any, address: str | None) -> str | None:
    """Connect to the cluster at `address`, or start one and return the folder of its files."""
    if ray.is_initialized():
        raise EngineError("this process is in a Ray cluster already: close the other replicas, or start a new process")
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is not None:
        ray.init(address, **quiet)
        return None
    for _ in range(STARTS):
        # Short, since Ray puts sockets into it, whose names may have 107 characters.
        folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        try:
            ray.init(
                "local",
                num_cpus=1,  # so many processes start before anybody needs them; replicas are not counted by default
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                _temp_dir=folder,
                **quiet,
            )
            return folder
        except Exception as error:  # a plain one where Ray's processes are not there within 30 s, as on a busy machine
            last = error
            with contextlib.suppress(Exception):
                ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, RuntimeError | OSError):
                break
    raise EngineError(f"Ray cannot start on this machine: {last}") from last


def _reachable(address: str) -> None:
    """Raise EngineError unless something listens at host:port; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(
            f"there is no Ray cluster at {address!r} ({error}): give host:port as `ray start --head` prints it"
        ) from None


def _reason(messages: str) -> str:
    """Return the last line that names an error, without its class: what happened in the replica."""
    named = [line.strip() for line in messages.splitlines() if re.match(r"\s*[\w.]*Error: ", line)]
    return re.sub(r"^[\w.]*Error: ", "", named[-1]) if named else messages.strip()[-500:]
