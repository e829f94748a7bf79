"""`make exercises`: generate exercises/ from solutions/.

python -m tools.release_exercises            writes what is out of date
python -m tools.release_exercises --check    writes nothing; exit code 1 if exercises/ is out of date
"""

import argparse
import shutil
import sys
from pathlib import Path

from warpcourse.exercises.release import release_files, topics
from warpcourse.paths import COURSE


def out_of_date(topic: str, course: Path = COURSE) -> list[str]:
    """List how exercises/<topic> differs from the release of solutions/<topic>: one line per file."""
    folder, wanted = course / "exercises" / topic, release_files(topic, course)
    present = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    lines = [f"{topic}/{path}: missing" for path in sorted(wanted.keys() - present)]
    lines += [
        f"{topic}/{path}: not in solutions/"
        for path in sorted(present - wanted.keys())
        if not any(part.startswith(".") for part in path.parts)
    ]
    lines += [
        f"{topic}/{path}: differs"
        for path in sorted(wanted.keys() & present)
        if (folder / path).read_bytes() != wanted[path]
    ]
    return lines


def write(topic: str, course: Path = COURSE) -> None:
    """Replace exercises/<topic> by the release of solutions/<topic>."""
    folder, wanted = course / "exercises" / topic, release_files(topic, course)
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in wanted.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.release_exercises", description="Generate exercises/ from solutions/."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if exercises/ is out of date")
    arguments = parser.parse_args(argv)
    stale = {topic: out_of_date(topic) for topic in topics()}
    if arguments.check:
        lines = [line for lines in stale.values() for line in lines]
        print("\n".join(lines) or "exercises/ is up to date.")
        if lines:
            print("exercises/ is out of date; run `make exercises`.", file=sys.stderr)
        return 1 if lines else 0
    for topic, lines in stale.items():
        if lines:
            write(topic)
        print(f"exercises/{topic}: {'written' if lines else 'up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
