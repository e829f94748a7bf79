"""`make evidence`: its parts, and what it says of those that it leaves out."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import evidence.__main__ as parts
from warpcourse.paths import COURSE


def test_each_part_has_a_command_and_a_row_on_the_page():
    page = (COURSE / "evidence" / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    for name, part in parts.PARTS.items():
        assert find_spec(part.command.split()[1]), name
        assert sum(f"`{name}`" in row for row in rows) == 1, f"evidence/README.md has no row for {name}"


@pytest.fixture
def ran(monkeypatch):
    """Return the names of the parts that ran; `differential` fails."""
    names: list[str] = []

    def run(name: str, rest: list[str]) -> bool:
        names.append(" ".join([name, *rest]))
        return name != "differential"

    monkeypatch.setattr(parts, "_run", run)
    return names


def test_what_needs_more_than_this_machine_is_left_out_and_named(ran, capsys):
    assert parts.main([]) == 1
    out = capsys.readouterr().out
    assert ran == [name for name, part in parts.PARTS.items() if not part.needs]
    assert "left out: public-programs (published programs in the simulator); needs clones of public repositories" in out
    assert "needs an NVIDIA GPU" in out
    assert out.endswith("failed: differential\n")


def test_a_part_by_name_with_arguments_of_its_own(ran, capsys):
    assert parts.main(["numba-tests", "--", "--resume"]) == 0
    assert ran == ["numba-tests --resume"]
    assert "left out" not in capsys.readouterr().out


def test_an_unknown_part_is_an_error(ran, capsys):
    assert parts.main(["numba"]) == 2
    assert "there is no part numba; choose among tests, counters" in capsys.readouterr().err
    assert not ran


def test_help_names_every_part_and_runs_none(ran, capsys):
    assert parts.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-len(parts.PARTS) :]] == list(parts.PARTS)
    assert not ran
