"""IDs that cannot leave the workspace, and folders that never collide."""

from __future__ import annotations

import pytest

from digits import workspace
from digits.files import DigitsError
from digits.workspace import Workspace, short_name


def test_root_is_what_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPLAB_DIGITS", str(tmp_path / "elsewhere"))
    assert Workspace().root == tmp_path / "elsewhere"
    monkeypatch.delenv("WARPLAB_DIGITS")
    monkeypatch.setenv("WARPLAB_MINE", str(tmp_path / "mine"))
    assert Workspace().root == tmp_path / "mine" / "digits_workspace"
    assert (tmp_path / "mine" / "digits_workspace" / "runs").is_dir()


def test_no_other_user_can_read_what_is_in_it(tmp_path):
    Workspace(tmp_path / "new")
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()] == [0o700] * 3


def test_root_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DigitsError, match="as the workspace"):
        Workspace(tmp_path / "file")


def test_ids_of_one_second_differ_and_are_listed_newest_first(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace.time, "strftime", lambda form: "20260102-030405")
    space = Workspace(tmp_path)
    ids = [space.create("runs", "Lenet").name for _ in range(11)]
    assert ids[:2] == ["20260102-030405-Lenet", "20260102-030405-Lenet-2"]
    assert space.ids("runs") == ids[::-1]
    monkeypatch.setattr(workspace.time, "strftime", lambda form: "20260102-030406")
    newest = space.create("runs", "a").name
    assert space.ids("runs")[0] == newest


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Häuser & Bäume", "Hauser-Baume"),
        ("../../etc/passwd", "etc-passwd"),
        ("数字", "unnamed"),
        ("", "unnamed"),
        ("-rf", "rf"),
        ("x" * 300, "x" * 40),
        ("a\0b\nc", "a-b-c"),
    ],
)
def test_name_is_made_safe(tmp_path, name, short):
    assert short_name(name) == short
    space = Workspace(tmp_path)
    folder = space.create("datasets", name)
    assert folder.parent == space.datasets
    assert space.folder("datasets", folder.name) == folder


@pytest.mark.parametrize("id", ["", ".", "..", "../runs", "a/b", "/etc", "nothing", "a\0", "x" * 300, ".hidden"])
def test_id_that_names_nothing_here_is_refused(tmp_path, id):
    (tmp_path / "datasets" / ".hidden").mkdir(parents=True)
    with pytest.raises(DigitsError, match="There is no dataset"):
        Workspace(tmp_path).folder("datasets", id)


def test_link_out_of_the_workspace_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    space = Workspace(tmp_path / "space")
    (space.runs / "link").symlink_to(outside)
    assert space.ids("runs") == []
    with pytest.raises(DigitsError, match="There is no run"):
        space.delete("runs", "link")
    assert outside.is_dir()


def test_deleted_is_gone_and_others_stay(tmp_path):
    space = Workspace(tmp_path)
    first, second = (space.create("plans", name).name for name in ("a", "b"))
    space.delete("plans", first)
    assert space.ids("plans") == [second]
    with pytest.raises(DigitsError, match="It may have been deleted"):
        space.delete("plans", first)


def test_unknown_kind_is_refused(tmp_path):
    with pytest.raises(DigitsError, match="datasets, runs, plans"):
        Workspace(tmp_path).ids("models")
