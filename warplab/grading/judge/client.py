"""Questions of the judge to the agent in a student's kernel, while a test cell runs and the event loop stands still.

They take the kernel's shell channel through a socket of their own. The kernel is not trusted: what is no answer of the
expected form is no answer, and waiting for one ends at a deadline.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import zmq
from jupyter_client.session import new_id
from jupyter_core.utils import run_sync

from warplab.grading.exchange import artefacts
from warplab.grading.exchange.artefacts import ArtefactError
from warplab.grading.student.agent import MIME

_EXPRESSION = "__import__('warplab.grading.student.agent', fromlist=['answer']).answer({!r})"
_POLL_SECONDS = 0.25  # between two looks at whether the process lives
_INTERRUPT_SECONDS = 3.0  # that an interrupted kernel has to say so
GIVE_UP_SECONDS = _INTERRUPT_SECONDS + 2.0  # after which a question is given up, beyond the time that it may take


class NoAnswer(Exception):
    """The student's process gave no answer. `reason`: "ended", "time" (and it can go on) or "silent" (it cannot)."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class AgentClient:
    """Asks the agent of the kernel that `manager` runs. `remaining()`: seconds that the current answer may take."""

    def __init__(self, manager: Any, remaining: Callable[[], float], limits: artefacts.Limits) -> None:
        self._manager, self._remaining, self._limits = manager, remaining, limits
        # Of its own: nbclient's is a copy of the manager's that counts messages for itself. Of two requests of one name
        # it would take this one's end for that of its cell, and leave out what the cell puts out.
        self._session = manager.session.clone()
        self._session.session = new_id()
        self._connected = manager.connect_shell()
        # nbclient's sockets belong to its event loop; this one is read without.
        self._socket = zmq.Socket.shadow(self._connected)

    def close(self) -> None:
        self._connected.close(linger=0)

    def ask(self, wishes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One answer a wish, each a dict with a text "kind"; the rest is as the student's process says.

        Raises NoAnswer.
        """
        request = json.dumps({"do": wishes})
        text = self._evaluate(_EXPRESSION.format(request), self._remaining())
        try:
            answer = artefacts.loads(text, self._limits)
        except ArtefactError as error:
            return [{"kind": "broken", "why": str(error)} for _ in wishes]
        done = answer.get("done") if isinstance(answer, dict) else None
        if not isinstance(done, list) or len(done) != len(wishes):
            done = [None] * len(wishes)
        return [
            one
            if isinstance(one, dict) and isinstance(one.get("kind"), str)
            else {"kind": "broken", "why": "no answer"}
            for one in done
        ]

    def responds(self, seconds: float) -> bool:
        """Whether the kernel answers anything at all."""
        try:
            self._evaluate("None", seconds, interrupt=False)
        except NoAnswer:
            return False
        return True

    def _evaluate(self, expression: str, seconds: float, interrupt: bool = True) -> str:
        content = {
            "code": "",
            "silent": True,
            "store_history": False,
            "user_expressions": {"answer": expression},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        with contextlib.suppress(zmq.ZMQError):
            message = self._session.send(self._socket, "execute_request", content)
        reply = self._receive(message["header"]["msg_id"], time.monotonic() + seconds)
        if reply is not None:
            return _text(reply)
        if not interrupt:
            raise NoAnswer("silent")
        run_sync(self._manager.interrupt_kernel)()
        late = self._receive(message["header"]["msg_id"], time.monotonic() + _INTERRUPT_SECONDS)
        raise NoAnswer("silent" if late is None else "time")

    def _receive(self, request: str, deadline: float) -> dict | None:
        """Content of the reply to a request; None if there is none until `deadline`."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            if not self._socket.poll(1000 * min(left, _POLL_SECONDS)):
                if not run_sync(self._manager.is_alive)():
                    raise NoAnswer("ended")
                continue
            try:
                _, message = self._session.recv(self._socket)
            except Exception:  # not signed, not JSON, not a message: whatever the process chose to send
                continue
            parent, content = message.get("parent_header"), message.get("content")
            if isinstance(parent, dict) and parent.get("msg_id") == request and isinstance(content, dict):
                return content


def _text(content: dict) -> str:
    """The agent's text in an execute_reply, "" where there is none."""
    found: Any = content
    for key in ("user_expressions", "answer", "data", MIME):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
