"""A class of twelve odd submissions, as the archives and rosters of Moodle and Canvas have them."""

from __future__ import annotations

import csv
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import nbformat

from tests.support.class_harness import RIGHT, TINY, answered, tiny_release
from tests.support.exercise_answers import cells_by_id

NAME = f"{TINY}.ipynb"
VAST = 40 << 20  # characters of output: more than a graded notebook may have
WRONG = "def double(x):\n    return x"


def text(notebook: nbformat.NotebookNode) -> bytes:
    return nbformat.writes(notebook).encode()


def zipped(*files: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return content.getvalue()


def dated(name: str, day: int) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, (2026, 3, day, 12, 0, 0))


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def tarred(name: str, content: bytes, mode: str = "w:gz") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for member, kind in ((tarfile.TarInfo("../../etc/evil.ipynb"), tarfile.SYMTYPE), (tarfile.TarInfo("d"), b"3")):
            member.type, member.linkname = kind, "/etc/passwd"
            archive.addfile(member)
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


class Odd:
    """Twelve students: what each hands in (the name of the file, its content), and what must come of it."""

    def __init__(self, root: Path) -> None:
        right, wrong = text(answered(root, RIGHT)), text(answered(root, WRONG))
        latin = text(answered(root, RIGHT + "  # né")).replace(b"\\u00e9", b"\xe9").replace("é".encode(), b"\xe9")
        edited, fewer, vast = answered(root, RIGHT), answered(root, RIGHT), answered(root, RIGHT)
        cells_by_id(edited)["test-one"].source = "assert True"
        fewer.cells = [cell for cell in fewer.cells if cell.id in ("double", "test-two")]
        printed = "the same line again and again\n" * (VAST // 30)
        cells_by_id(vast)["double"].outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed)]
        named = f"hw\\{TINY} (1).ipynb"
        self.files: dict[str, list[tuple[str | zipfile.ZipInfo, bytes]]] = {
            "1": [(NAME, text(edited))],
            "2": [("homework.zip", zipped((named, right), ("hw\\read me.txt", b"")))],  # as Windows packs
            "3": [("all.zip", zipped(("x/inner.tar.gz", tarred(f"a/b/{NAME}", right))))],
            "4": [link(NAME, "../../../solutions/x.ipynb")],
            "5": [(NAME, latin)],
            "6": [(f"exercise_{TINY}-1.ipynb.txt", text(fewer))],
            "7": [(NAME, text(tiny_release(root)))],
            "8": [("report.pdf", b"%PDF-1.4")],
            # One name to a reader, two to Linux.
            "10": [(dated("zo\u00eb.ipynb", 2), wrong), (dated("zoe\u0308.ipynb", 3), right)],
            "11": [(NAME, text(vast))],
            "12": [(NAME, b"")],
        }  # 9 hands in nothing


# Points of 3 that must be there; None: there is a reason in their place.
POINTS = {**dict.fromkeys(map(str, range(1, 13)), 3.0), "4": None, "7": 0.0, "8": None, "9": None, "12": 0.0}
REASONS = {
    "2": "Only the notebook is graded, not read me.txt",
    "3": "is a link or a device",
    "4": "is a link or a device",
    "8": "no notebook in what was handed in: ",
    "10": "zoë.ipynb of 2026-03-03 counts, not zoë.ipynb of 2026-03-02.",
}


def moodle(course: Path, folder: Path) -> list[str]:
    files = []
    for number, handed in Odd(course).files.items():
        for name, content in handed:
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            info.filename = f"Zoë Nº {number}_{number}_assignsubmission_file/{info.filename}"
            files.append((info, content))
    (folder / "class.zip").write_bytes(zipped(*files))
    lines = [["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"]]
    lines[0] += ["Grade can be changed", "Last modified (submission)", "Last modified (grade)", "Feedback comments"]
    for number in POINTS:
        lines.append(
            [f"Participant {number}", f"Zoë Nº {number}", f"s{number}@uni.edu", "", "", "30.00", "Yes", "-", "-", ""]
        )
    return write_roster(folder, lines)


def canvas(course: Path, folder: Path) -> list[str]:
    files = []
    for number, handed in Odd(course).files.items():
        for attempt, (name, content) in enumerate(handed):
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            late = "LATE_" if number == "11" else ""
            info.filename = f"zoe_{late}{number}_{900 + attempt}_{info.filename}"
            files.append((info, content))
    files.append((f"zoe_1_899_{NAME}", b"an attempt before"))
    (folder / "class.zip").write_bytes(zipped(*files))
    lines = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Essay (7)", "Tiny (8)", "Final Score"]]
    lines[0][6] = "90 Tiny (8)"
    lines += [
        ["", "", "", "", "", "Manual Posting", "", ""],
        ["    Points Possible", "", "", "", "", "5", "30", "(read only)"],
    ]
    lines += [[f"Nº {number}, Zoë", number, "", f"s{number}@uni.edu", "A", "4", "", ""] for number in POINTS]
    return write_roster(folder, lines)


def write_roster(folder: Path, lines: list[list[str]]) -> list[str]:
    with open(folder / "roster.csv", "w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows(lines)
    return [str(folder / "class.zip"), "--roster", str(folder / "roster.csv")]
