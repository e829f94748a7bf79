"""What earlier processes leave: machine code, by a hash of all that it was made from, and what blocks have cost them.

It lies in `warplab/code` of the user's cache (XDG_CACHE_HOME, or ~/.cache), or in the folder WARPLAB_KEEP_CODE. Who can
write there can run code as the user: so the folder must be the user's own, and writable for nobody else; otherwise
nothing is kept, nor is it with WARPLAB_KEEP_CODE=no, as where submissions run.
"""

import functools
import hashlib
import os
import tempfile
from pathlib import Path

_MOST = 2000  # files, of some 10 KB each; then the older half goes
_DIGEST = hashlib.sha256().digest_size


@functools.cache
def _folder() -> Path | None:
    given = os.environ.get("WARPLAB_KEEP_CODE")
    if os.name != "posix" or given == "no":
        return None
    try:
        folder = Path(given or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warplab" / "code")
        folder = folder.absolute()  # wherever the process goes
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except (OSError, RuntimeError):  # no home
        return None
    own = status.st_uid == os.geteuid() and not status.st_mode & 0o022 and not folder.is_symlink()
    return folder if own else None


@functools.cache
def _tidy(folder: Path) -> None:
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    for file in files[: _MOST // 2] if len(files) > _MOST else ():
        file.unlink(missing_ok=True)


def find(key: str) -> bytes | None:
    """Return the code that was kept under a key, if it is whole."""
    folder = _folder()
    if folder is None:
        return None
    try:
        data = (folder / key).read_bytes()
    except OSError:
        return None
    code = data[_DIGEST:]
    return code if hashlib.sha256(code).digest() == data[:_DIGEST] else None


def keep(key: str, code: bytes) -> None:
    """Keep code for later processes, if that can be done."""
    folder = _folder()
    if folder is None:
        return
    try:
        _tidy(folder)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            try:
                file.write(hashlib.sha256(code).digest() + code)
                file.flush()
                Path(file.name).replace(folder / key)
            except OSError:
                Path(file.name).unlink()
    except OSError:  # the disk is full
        pass
