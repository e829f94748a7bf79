"""Requests to a service from many clients at once, for tests that look at what becomes of each."""

import os
import threading
import urllib.error
from pathlib import Path

from kernels.serving.serve.service.process import Refused
from tests.support.waiting import HANG

# For a service whose engine is in this folder, which no import by a name with dots can reach.
_FOLDERS = [Path(__file__).parent, Path(__file__).parents[3], *filter(None, [os.environ.get("PYTHONPATH")])]
HERE = {"PYTHONPATH": os.pathsep.join(map(str, _FOLDERS))}


class Asking:
    """Requests in threads of their own, one sample each: their statuses and answers, or "not accepted"."""

    def __init__(self, service):
        self._service, self._threads, self.answers = service, [], {}

    def send(self, *numbers):
        for number in numbers:
            self._threads.append(threading.Thread(target=self._ask, args=(number,)))
            self._threads[-1].start()

    def wait(self):
        for thread in self._threads:
            thread.join(HANG)
            assert not thread.is_alive()

    def _ask(self, number):
        try:
            self.answers[number] = self._service.ask([[number, 0.5]], HANG)[0, 0]
        except Refused as refused:
            self.answers[number] = refused.status
        except (urllib.error.URLError, OSError):
            self.answers[number] = "not accepted"
