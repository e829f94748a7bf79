"""The judge's questions to the agent in a student's kernel, while a test cell runs and the event loop stands still.

They use the kernel's shell channel through a socket of their own. The kernel is not trusted: a message of another form
than expected counts as none, and waiting ends at a deadline.
"""

import contextlib
import json
from typing import Any

import zmq
from jupyter_client.session import new_id
from jupyter_core.utils import run_sync

from warpcourse.grading.exchange import artefacts
from warpcourse.grading.exchange.artefacts import ArtefactError
from warpcourse.grading.judge.clock import Clock
from warpcourse.grading.student.agent import MIME

_EXPRESSION = "__import__('warpcourse.grading.student.agent', fromlist=['answer']).answer({!r})"
_POLL_SECONDS = 0.25  # between two looks at whether the process lives
_INTERRUPT_SECONDS = 3.0  # for an interrupted kernel to say so
GIVE_UP_SECONDS = _INTERRUPT_SECONDS + 2.0  # beyond a question's time limit, until it is given up


class NoAnswer(Exception):
    """The student's process gave no answer. `reason`: "ended", "time" (it can go on) or "silent" (it cannot)."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class AgentClient:
    """A connection to the agent of the kernel that `manager` runs. `clock`: the time of its submission."""

    def __init__(self, manager: Any, clock: Clock, limits: artefacts.ArtefactLimits) -> None:
        self._manager, self._clock, self._limits = manager, clock, limits
        # nbclient's session copies the manager's and counts messages by itself. Sharing its name, two requests could
        # get the same id; nbclient would take the end of this one for that of its cell, and lose the cell's output.
        self._session = manager.session.clone()
        self._session.session = new_id()
        self._connected = manager.connect_shell()
        # nbclient's sockets belong to its event loop; this one is read without it.
        self._socket: zmq.Socket = zmq.Socket.shadow(self._connected)

    def close(self) -> None:
        self._connected.close(linger=0)

    def ask(self, wishes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return one answer per wish. Only the text "kind" of an answer is sure; the rest is the student's word.

        Raises NoAnswer.
        """
        request = json.dumps({"do": wishes})
        text = self._evaluate(_EXPRESSION.format(request), self._clock.for_an_answer())
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
        """Return whether the kernel answers at all."""
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
        reply = self._receive(message["header"]["msg_id"], seconds)
        if reply is not None:
            return _text(reply)
        if not interrupt:
            raise NoAnswer("silent")
        run_sync(self._manager.interrupt_kernel)()
        late = self._receive(message["header"]["msg_id"], _INTERRUPT_SECONDS)
        raise NoAnswer("silent" if late is None else "time")

    def _receive(self, request: str, seconds: float) -> dict | None:
        """Return the content of the reply to a request, None if there is none in time."""
        deadline = self._clock.now() + seconds
        while True:
            left = deadline - self._clock.now()
            if left <= 0:
                return None
            if not self._socket.poll(int(1000 * min(left, _POLL_SECONDS))):
                if not run_sync(self._manager.is_alive)():
                    raise NoAnswer("ended")
                continue
            try:
                _, message = self._session.recv(self._socket)
            except Exception:  # not signed, not JSON, not a message: the process can send anything
                continue
            parent, content = message.get("parent_header"), message.get("content")
            if isinstance(parent, dict) and parent.get("msg_id") == request and isinstance(content, dict):
                return content


def _text(content: dict) -> str:
    """Return the agent's text in an execute_reply, "" if there is none."""
    found: Any = content
    for key in ("user_expressions", "answer", "data", MIME):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
