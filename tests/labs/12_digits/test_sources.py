"""Folders and archives that try to lead elsewhere, or to unpack to more than there is room for."""

from __future__ import annotations

import io
import os
import re
import stat
import struct
import zipfile

import pytest

from digits.data import folder_source, read_image, zip_directory, zip_source
from digits.data.folder_source import FolderSource
from digits.data.read_image import BadImage
from digits.data.zip_source import ZipSource
from digits.files import DigitsError


def read_all(source):
    files, skipped = source.files()
    contents = {}
    for where, names in files:
        try:
            contents["/".join(names)] = source.read(where)
        except BadImage as error:
            contents["/".join(names)] = str(error)
    source.close()
    return contents, {one["file"]: one["reason"] for one in skipped}


def archive(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, data in members.items():
            stream.writestr(name, data)
    return path


def test_folder_gives_its_files(tmp_path):
    (tmp_path / "cat" / "old").mkdir(parents=True)
    (tmp_path / "cat" / "1.png").write_bytes(b"one")
    (tmp_path / "cat" / "old" / "2.png").write_bytes(b"two")
    assert read_all(FolderSource(tmp_path)) == ({"cat/1.png": b"one", "cat/old/2.png": b"two"}, {})


def test_links_and_devices_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(b"secret")
    root = tmp_path / "root"
    (root / "cat").mkdir(parents=True)
    (root / "cat" / "file.png").symlink_to(outside / "secret.png")
    (root / "cat" / "folder").symlink_to(outside)
    (root / "cat" / "loop").symlink_to(root)
    (root / "cat" / "broken").symlink_to("nowhere")
    os.mkfifo(root / "cat" / "pipe.png")
    contents, skipped = read_all(FolderSource(root))
    assert contents == {}
    assert sorted(skipped) == [f"cat/{name}" for name in ("broken", "file.png", "folder", "loop", "pipe.png")]
    assert skipped["cat/folder"].startswith("A link, which is not followed")
    assert skipped["cat/pipe.png"] == "No plain file."


def test_file_exchanged_for_a_link_after_listing_is_not_read(tmp_path):
    (tmp_path / "cat").mkdir()
    file = tmp_path / "cat" / "1.png"
    file.write_bytes(b"x")
    source = FolderSource(tmp_path)
    ((where, _),), _ = source.files()
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(BadImage, match="Cannot read the file"):
        source.read(where)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BadImage, match="No plain file"):
        source.read(where)


def test_large_file_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_source, "MOST_BYTES", 10)
    (tmp_path / "big").write_bytes(bytes(1000))
    ((where, _),), _ = FolderSource(tmp_path).files()
    assert len(FolderSource(tmp_path).read(where)) == 11  # enough for read_image to refuse it


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_source, "MOST_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(DigitsError, match="more than 2 files"):
        FolderSource(tmp_path).files()


def test_what_is_no_folder_says_so(tmp_path):
    with pytest.raises(DigitsError, match=r"is not there\. Give a folder that holds one folder per class"):
        FolderSource(tmp_path / "nothing")
    with pytest.raises(DigitsError, match=f"^{re.escape(str(tmp_path))}/nothing is not there"):
        FolderSource(tmp_path / "a" / ".." / "nothing")  # as it is, not as it was written
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DigitsError, match="is a file, not a folder"):
        FolderSource(tmp_path / "file")


def test_archive_gives_its_files(tmp_path):
    path = archive(tmp_path / "a.zip", {"cat/": b"", "cat/1.png": b"one", "dog\\2.png": b"two"})
    assert read_all(ZipSource(path)) == ({"cat/1.png": b"one", "dog/2.png": b"two"}, {})
    assert os.listdir(tmp_path) == ["a.zip"]


@pytest.mark.parametrize("name", ["../cat/1.png", "cat/../../1.png", "/etc/1.png", "C:\\cat\\1.png", "cat\\..\\1.png"])
def test_path_out_of_the_archive_is_refused(tmp_path, name):
    contents, skipped = read_all(ZipSource(archive(tmp_path / "a.zip", {name: b"x", "cat/1.png": b"y"})))
    assert contents == {"cat/1.png": b"y"}
    assert skipped == {name: "Its path leads out of the archive."}


def test_link_in_the_archive_is_refused(tmp_path):
    link = zipfile.ZipInfo("cat/link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as stream:
        stream.writestr(link, "/etc/passwd")
    contents, skipped = read_all(ZipSource(tmp_path / "a.zip"))
    assert contents == {}
    assert skipped["cat/link.png"].startswith("A link, which is not followed")


def test_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = archive(tmp_path / "bomb.zip", {f"cat/{index}.png": bytes(100_000) for index in range(10)})
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(zip_source, "MOST_UNPACKED", 999_999)
    with pytest.raises(DigitsError, match=r"bomb\.zip unpacks to 0\.0 GB"):
        ZipSource(path)


def test_archive_that_lists_too_much_is_refused_before_its_list_is_read(tmp_path, monkeypatch):
    path = archive(tmp_path / "many.zip", {f"cat/{index}.png": b"" for index in range(10)})
    monkeypatch.setattr(zip_source, "MOST_FILES", 10)
    ZipSource(path).close()
    monkeypatch.setattr(zip_source, "MOST_FILES", 9)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(DigitsError, match=r"photos\.zip lists more than 9 files"):
        ZipSource(path, "photos.zip")


@pytest.mark.parametrize("before", [b"", b"a program that unpacks itself"])
@pytest.mark.parametrize("comment", [b"", b"taken in Rome", b"PK\5\6" * 20])
@pytest.mark.parametrize("zip_64", [False, True])
def test_entries_are_counted_as_zipfile_reads_them(monkeypatch, before, comment, zip_64):
    if zip_64:
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as written:
        for index in range(7):
            info = zipfile.ZipInfo(f"cat/{index}.png")
            info.comment, info.extra = b"c" * index, struct.pack("<2HQ", 0x9999, 8, index)
            written.writestr(info, b"PK\1\2")
        written.comment = comment
    whole = io.BytesIO(before + stream.getvalue())
    assert (b"PK\6\6" in whole.getvalue()) == zip_64
    try:
        there = len(zipfile.ZipFile(whole).infolist())
    except zipfile.BadZipFile:  # what its comment says of a directory is false
        there = 0
    assert zip_directory.count(whole, 100) == there
    assert zip_directory.count(whole, 3) == min(there, 4)


def test_empty_folders_are_named(tmp_path):
    root = tmp_path / "root"
    for name in ("cat", "empty", "dog/old", ".git/refs", "__MACOSX"):
        (root / name).mkdir(parents=True)
    (root / "cat" / "1.png").write_bytes(b"one")
    (root / "empty file").write_bytes(b"")
    _, skipped = read_all(FolderSource(root))
    assert skipped == {"empty/": folder_source.EMPTY, "dog/old/": folder_source.EMPTY}
    folders = dict.fromkeys(("cat/", "dog/", "dog/old/", "empty/", "__MACOSX/", "emptier/"), b"")
    path = archive(tmp_path / "a.zip", {**folders, "cat/1.png": b"one", "emptier.png": b""})
    _, skipped = read_all(ZipSource(path))
    assert skipped == dict.fromkeys(("empty/", "dog/old/", "emptier/"), folder_source.EMPTY)


def test_member_larger_than_an_image_may_be_is_not_unpacked(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.zip", {"cat/1.png": bytes(2000)})
    monkeypatch.setattr(zip_source, "MOST_BYTES", 1000)
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    contents, _ = read_all(ZipSource(path))
    assert contents["cat/1.png"].startswith("Larger than")


def test_member_that_lies_about_its_size_gives_no_more_than_it_said(tmp_path):
    path = archive(tmp_path / "a.zip", {"cat/1.png": bytes(5_000_000)})
    data = path.read_bytes()
    true, lie = struct.pack("<I", 5_000_000), struct.pack("<I", 100)
    assert data.count(true) == 2  # in the local header and in the directory
    path.write_bytes(data.replace(true, lie))
    contents, _ = read_all(ZipSource(path))
    content = contents["cat/1.png"]
    assert isinstance(content, str) or len(content) <= 100
    assert read_image.MOST_BYTES > 100


def test_damaged_and_encrypted_members_have_reasons(tmp_path):
    path = archive(tmp_path / "a.zip", {"cat/1.png": os.urandom(500), "dog/2.png": b"whole"})
    data = bytearray(path.read_bytes())
    data[100:110] = bytes(10)
    path.write_bytes(data)
    contents, _ = read_all(ZipSource(path))
    assert contents["cat/1.png"].startswith("Damaged in the archive")
    assert contents["dog/2.png"] == b"whole"
    with zipfile.ZipFile(path) as stream:
        place = stream.start_dir + 8  # the flags of the first member in the directory
    data[place] |= 1
    path.write_bytes(data)
    contents, skipped = read_all(ZipSource(path))
    assert skipped == {"cat/1.png": "Encrypted. Pack it without a password."}
    data[place] &= ~1
    data[place + 2] = 99  # a compression method that there is not
    path.write_bytes(data)
    assert read_all(ZipSource(path))[0]["cat/1.png"].startswith("Packed in a way that is not read")


@pytest.mark.parametrize("data", [b"", b"PK", b"no archive", b"PK\x05\x06" + bytes(10), b"Rar!\x1a\x07\x00"])
def test_what_is_no_archive_says_so(tmp_path, data):
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(DigitsError, match=r"a\.zip is no zip archive"):
        ZipSource(tmp_path / "a.zip")
    with pytest.raises(DigitsError, match=r"Cannot open b\.zip"):
        ZipSource(tmp_path / "b.zip")


def test_damaged_archives_never_break(tmp_path):
    import random

    whole = archive(tmp_path / "a.zip", {"cat/1.png": b"x" * 50, "dog/2.png": os.urandom(50)}).read_bytes()
    rng = random.Random(5)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "a.zip").write_bytes(data)
        try:
            contents, skipped = read_all(ZipSource(tmp_path / "a.zip"))
        except DigitsError:
            continue
        assert len(contents) + len(skipped) <= 3, "seed 5"
