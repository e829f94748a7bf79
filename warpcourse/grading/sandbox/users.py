"""A pool of users without accounts, one per zygote, as which students' code runs if the grader is root.

Linux limits the number of processes of a user, but not of root.
"""

import contextlib
import fcntl
import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Neither distributions nor systemd assign these user ids (systemd.io/UIDS-GIDS: 60578 to 61183 are unused).
POOL = range(60800, 61056)
_LOCKS = Path("/run/warplab-grading")


@contextlib.contextmanager
def pooled_user() -> Iterator[int | None]:
    """Hold, for root, a user id that no account and no other grader uses. Yields None if the grader is not root."""
    if os.geteuid() != 0:
        yield None
        return
    _LOCKS.mkdir(mode=0o700, parents=True, exist_ok=True)
    accounts = {account.pw_uid for account in pwd.getpwall()}
    for user in POOL:
        if user in accounts:
            continue
        with open(_LOCKS / str(user), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            try:
                _evict(user)  # a killed grader may have left processes
                yield user
            finally:
                _evict(user)
            return
    raise RuntimeError(f"all {len(POOL)} user ids of the pool are in use; end some of the graders on this machine")


def _evict(user: int) -> None:
    """Kill all processes of a pooled user. Usually the zygote has already done so."""
    for entry in os.listdir("/proc"):
        with contextlib.suppress(FileNotFoundError):
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid == user:
                subprocess.run(["/bin/kill", "-KILL", "--", "-1"], user=user, group=user, extra_groups=[], check=False)
                return
