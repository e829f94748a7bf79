"""The release versions of exercises, as a library."""

from __future__ import annotations

from warplab.exercises import release
from warplab.paths import COURSE

TOPIC = "01_vector_multiply"


def test_release_stands_in_for_a_missing_source(tmp_path):
    folder = tmp_path / "exercises" / TOPIC
    folder.mkdir(parents=True)
    source = COURSE / "solutions" / TOPIC / f"{TOPIC}.ipynb"
    (folder / source.name).write_text(release.release_text(source))
    assert release.topics(tmp_path) == [TOPIC]
    assert release.release_notebook(TOPIC, tmp_path) == release.release_notebook(TOPIC)
