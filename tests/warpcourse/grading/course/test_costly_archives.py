"""Archives of hostile students for `warplab collect`: the class is collected, reports and memory stay small."""

from __future__ import annotations

import bz2
import io
import json
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.class_harness import TINY, tiny_course
from tests.support.odd_class import NAME, link, zipped
from warpcourse.grading.course import collect_command
from warplab.__main__ import main


def packed_by(method: int) -> bytes:
    """Return a zip with 64 MiB of zeros by this method: by bzip2 some 100 bytes, which zipfile unpacks at once."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        archive.writestr(NAME, bytes(64 << 20))
    return content.getvalue()


def sparse() -> bytes:
    """Return a tar whose member says that it has 1 TiB, all of it holes."""
    member = tarfile.TarInfo(NAME)
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": NAME}
    member.pax_headers |= {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,0"}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    return content.getvalue()


def many(number: int) -> bytes:
    return zipped(*((f"{n}.ipynb", str(n).encode()) for n in range(number)))


def archives(number: int, content: bytes) -> bytes:
    return zipped(*((f"{n}.zip", content) for n in range(number)))


class Attack(NamedTuple):
    """`content`: makes a student's x.zip, which takes up to a second. `told`: what its report says."""

    name: str
    tries: str
    content: Callable[[], bytes]
    told: str = ""


ATTACKS = [
    Attack(
        "bzip2",
        "hands in a zip packed by bzip2, of which 929 bytes unpack to 2 GiB at once",
        lambda: packed_by(zipfile.ZIP_BZIP2),
        "it has a password, or few programs read it",
    ),
    Attack(
        "lzma",
        "hands in a zip packed by LZMA, which may ask for 4 GiB to unpack",
        lambda: packed_by(zipfile.ZIP_LZMA),
        "it has a password, or few programs read it",
    ),
    Attack(
        "long_names",
        "gives a file a name of 60,000 characters, on which a regular expression works for minutes",
        lambda: zipped((f"a{'-1' * 30_000}!.ipynb", b"1")),
        "has neither the name nor a cell",
    ),
    Attack(
        "long_paths",
        "gives a file a path of 30,000 folders, to fill reports and the terminal",
        lambda: zipped(("d/" * 30_000 + "x.txt", b"1")),
        "There is no notebook",
    ),
    Attack(
        "many_notebooks",
        "hands in 2,000 notebooks, whose names fill its report",
        lambda: many(2_000),
        "Several notebooks: ",
    ),
    Attack(
        "many_archives",
        "hands in 100 archives with 1,000 files each",
        lambda: archives(100, many(1_000)),
        "what follows was left out",
    ),
    Attack("sparse", "hands in a tar whose file says that it has 1 TiB of holes", sparse, "have more than 16 MiB"),
    Attack(
        "bomb_of_bzip2",
        "hands in 300 MiB of zeros, packed by bzip2",
        lambda: zipped(("x.ipynb.bz2", bz2.compress(bytes(300 << 20)))),
        "have more than 16 MiB",
    ),
    Attack(
        "of_another",
        "hands in paths that lead to another student's folder, as Linux and as Windows write them",
        lambda: zipped((f"../honest/{TINY}.ipynb", b"evil"), (f"C:\\honest\\{NAME}", b"evil")),
        "",
    ),
    Attack("to_a_file", "hands in an absolute path", lambda: zipped((f"/etc/{NAME}", b"evil")), ""),
    Attack(
        "link_inside",
        "hands in a zip with a link to another student's notebook",
        lambda: zipped(link(NAME, "../honest/" + NAME)),
        "is a link or a device",
    ),
    Attack(
        "colours",
        "names files so that they clear the terminal and change its title",
        lambda: zipped(("\x1b[2J\x1b]0;evil\x07.zip", b"1"), ("\u202egpj.exe", b"")),
        "There is no notebook",
    ),
    Attack(
        "formula", "names a file as a formula", lambda: zipped(("=cmd|' /C calc'!A0.txt", b"")), "There is no notebook"
    ),
    Attack("zero", "hands in a name with a zero byte", lambda: zipped((NAME + "\0.txt", b"1")), ""),
    Attack(
        "no_names", "hands in files without names", lambda: zipped(("..", b"1"), ("//", b"1")), "There is no notebook"
    ),
    Attack(
        "folder",
        "hands in a folder with the notebook's name",
        lambda: zipped((f"{NAME}/", b""), (f"{NAME}/x.ipynb", b"1")),
        "",
    ),
]


@pytest.fixture
def course(tmp_path):
    return tiny_course(tmp_path / "course")


def test_no_archive_of_a_student_harms_the_class(course, tmp_path, capsys, monkeypatch):
    """Reports stay short, only a student's own folder is written, and an honest neighbour is collected."""
    monkeypatch.setattr(collect_command, "MAX_BYTES", 16 << 20)  # a class's 256 MiB would take 0.5 GB here
    handed = [(f"{attack.name}/x.zip", attack.content()) for attack in ATTACKS]
    (tmp_path / "class.zip").write_bytes(zipped(*handed, (f"honest/{NAME}", b"honest")))
    assert main(["collect", TINY, str(tmp_path / "class.zip"), "--course", str(course)]) == 1
    told = capsys.readouterr().out
    assert len(told) < 20_000
    assert "\x1b" not in told
    assert "\u202e" not in told
    for attack in ATTACKS:
        lines = [line for line in told.splitlines() if line.startswith(f"  {attack.name}: ")]
        assert not attack.told or any(attack.told in line for line in lines), (attack.name, lines)
        assert max(map(len, lines), default=0) < 2_000, attack.name
    submitted = course / "grading" / "submitted"
    assert (submitted / "honest" / TINY / NAME).read_bytes() == b"honest"
    files = [path.relative_to(submitted) for path in submitted.rglob("*") if not path.is_dir()]
    assert {str(Path(*path.parts[1:])) for path in files} == {f"{TINY}/{NAME}"}
    assert {path.parts[0] for path in files} <= {"honest", *(attack.name for attack in ATTACKS)}
    assert all(stat.S_ISREG((submitted / path).lstat().st_mode) for path in files)
    kept = (course / "grading" / "collected" / f"{TINY}.json").read_text()
    assert len(kept) < 20_000
    assert not json.loads(kept)["students"]["bzip2"]["found"]
