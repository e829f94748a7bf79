"""The README's example runs as it stands and prints the rows that the README shows."""

from __future__ import annotations

import re

from warpcourse.paths import COURSE

TEXT = (COURSE / "README.md").read_text()


def test_the_example_prints_what_the_readme_shows(tmp_path, capsys, monkeypatch):
    example, rows = re.findall(r"```(?:python)?\n(.*?)```", TEXT, re.S)[1:3]
    path = tmp_path / "example.py"
    path.write_text(example)
    exec(compile(example, str(path), "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out
    assert len(rows.splitlines()) == 4
    for row in rows.splitlines():
        assert row in printed
