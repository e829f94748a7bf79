"""What is kept of a learner survives two writers, damage and a folder that cannot be written."""

import json
import multiprocessing

import pytest

from warpcourse.learner import record


def test_what_is_kept_is_read_again(mine):
    assert record.read() == {"predictions": {}, "tasks": {}, "exercises": {}}
    assert record.keep("tasks", "01/shift", {"done": True}) == ""
    assert record.keep("tasks", "01/shift", {"tries": 2}) == ""
    kept = record.entry("tasks", "01/shift")
    assert (kept["done"], kept["tries"]) == (True, 2)
    assert kept["at"].endswith("+00:00")
    assert record.entry("tasks", "01/other") == {}
    assert sorted(path.name for path in mine.iterdir()) == [".progress.json.lock", "progress.json"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"tasks": []}', b'{"tasks": {"01/a": 3}}', b"[" * 100_000],
    ids=["empty", "cut", "no text", "a list", "a section is a list", "an entry is a number", "nested"],
)
def test_a_damaged_file_is_set_aside_and_not_lost(mine, damage):
    mine.mkdir()
    (mine / "progress.json").write_bytes(damage)
    (mine / "progress.damaged-1.json").write_text("an earlier one")
    assert record.read()["tasks"] == {}
    assert (mine / "progress.json").read_bytes() == damage  # reading changes nothing
    assert record.keep("tasks", "01/a", {"done": True}) == ""
    assert record.entry("tasks", "01/a")["done"] is True
    assert (mine / "progress.damaged-1.json").read_text() == "an earlier one"
    assert (mine / "progress.damaged-2.json").read_bytes() == damage


def test_unknown_sections_of_a_newer_course_do_no_harm(mine):
    mine.mkdir()
    (mine / "progress.json").write_text('{"tasks": {"01/a": {"done": true}}, "badges": {}}')
    assert record.entry("tasks", "01/a") == {"done": True}


def test_a_crash_while_writing_leaves_the_old_file(mine, monkeypatch):
    record.keep("tasks", "01/a", {"done": True})
    before = (mine / "progress.json").read_bytes()

    def crash(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dump", crash)
    with pytest.raises(KeyboardInterrupt):
        record.keep("tasks", "01/b", {"done": True})
    assert (mine / "progress.json").read_bytes() == before
    assert sorted(path.name for path in mine.iterdir()) == [".progress.json.lock", "progress.json"]


def test_where_nothing_can_be_written_it_is_known_until_the_process_ends(mine):
    mine.write_text("a file where the folder should be")
    assert "cannot be written" in record.keep("tasks", "01/a", {"done": True})
    assert record.entry("tasks", "01/a")["done"] is True


def _keep_many(lab):
    for number in range(20):
        record.keep("tasks", f"{lab:02}/task-{number}", {"done": True})


def test_two_lessons_that_write_at_once_lose_nothing(mine):
    spawn = multiprocessing.get_context("fork")
    writers = [spawn.Process(target=_keep_many, args=(lab,)) for lab in (1, 2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(record.read()["tasks"]) == 60


@pytest.mark.parametrize("key", ["shift", "1/shift", "01/", "01/Shift", "01/a b", "01/a/b", "", None, 7])
def test_a_key_names_its_lab(key):
    with pytest.raises(ValueError, match="give the number of the lab and a name"):
        record.check_key(key)
