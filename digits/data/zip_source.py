"""Files of a zip archive, read in memory: nothing is unpacked to the disk, so no path in it can lead anywhere."""

import stat
import zipfile
from pathlib import Path

from digits.data import zip_directory
from digits.data.folder_source import EMPTY, MOST_FILES
from digits.data.layout import Path as Names
from digits.data.layout import is_hidden, printable
from digits.data.read_image import MOST_BYTES, BadImage
from digits.files import DigitsError, explained

MOST_UNPACKED = 4 << 30  # bytes of all files together
_ENCRYPTED = 0x1  # bit 0 of the general purpose flags; APPNOTE.TXT 4.4.4


class ZipSource:
    """The files in the archive at `path`. Raises DigitsError if it is no zip archive, or unpacks to too much.

    `name`: what the user calls it; the file's name if "".
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.path = Path(path)
        name = printable(name or self.path.name)
        with explained(f"open {name}"):
            with self.path.open("rb") as stream:
                if zip_directory.count(stream, MOST_FILES) > MOST_FILES:
                    raise DigitsError(
                        f"{name} lists more than {MOST_FILES} files, the most that is read. Give an archive of images "
                        "only, or unpack it and give the folder of some of them."
                    )
            try:
                self._archive = zipfile.ZipFile(self.path)
            except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeError) as error:
                raise DigitsError(
                    f"{name} is no zip archive, or a damaged one ({error}). Give a .zip file or a folder."
                ) from error
        members = self._archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > MOST_UNPACKED:
            self.close()
            raise DigitsError(
                f"{name} unpacks to {unpacked / 1e9:.1f} GB; {MOST_UNPACKED / 1e9:.1f} GB is the most that is read. "
                "Unpack it and give the folder instead."
            )

    def files(self) -> tuple[list[tuple[object, Names]], list[dict[str, str]]]:
        """Return (what `read` takes, path) of each file in order of names, and what is refused, with the reason."""
        found: list[tuple[object, Names]] = []
        skipped: list[dict[str, str]] = []
        members = sorted(self._archive.infolist(), key=lambda member: member.filename)
        # In this order a folder stands right before what is in it.
        followed = [member.filename for member in members[1:]] + [""]
        for member, after in zip(members, followed, strict=True):
            names = tuple(member.filename.replace("\\", "/").split("/"))
            reason = _refusal(member, names)
            if reason:
                skipped.append({"file": printable(member.filename), "reason": reason})
            elif not member.is_dir() and names[-1]:
                found.append((member, names))
            elif not after.startswith(member.filename) and not is_hidden(names[:-1]):
                skipped.append({"file": printable(member.filename), "reason": EMPTY})
        return found, skipped

    def read(self, member: object) -> bytes:
        """Return the content of a member. Raises BadImage if it is damaged or packed in a way that is not read."""
        if not isinstance(member, zipfile.ZipInfo) or member.file_size > MOST_BYTES:
            raise BadImage(f"Larger than {MOST_BYTES / 1e6:.0f} MB, the most that is read.")
        try:
            # No more than the directory promises comes out of a member, whatever is packed in it.
            with self._archive.open(member) as stream:
                return stream.read(MOST_BYTES + 1)
        except NotImplementedError:
            raise BadImage("Packed in a way that is not read. Pack it with deflate, as usual.") from None
        except Exception as error:
            # Decompressors of damaged data raise errors of their own: zlib.error, EOFError, LZMAError and others.
            raise BadImage(f"Damaged in the archive: {str(error) or type(error).__name__}.") from error

    def close(self) -> None:
        self._archive.close()


def _refusal(member: zipfile.ZipInfo, names: Names) -> str:
    """Return why a member is not read, or nothing."""
    if not names[0] or ".." in names or ":" in names[0]:
        return "Its path leads out of the archive."
    if stat.S_ISLNK(member.external_attr >> 16):
        return "A link, which is not followed. Pack the file itself."
    return "Encrypted. Pack it without a password." if member.flag_bits & _ENCRYPTED else ""
