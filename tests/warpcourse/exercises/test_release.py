"""The release versions of exercises, as a library."""

from __future__ import annotations

from tests.support.sample import SAMPLE, SAMPLE_COURSE, sample_release
from warpcourse.exercises import release


def test_release_stands_in_for_a_missing_source(tmp_path):
    folder = tmp_path / "exercises" / SAMPLE
    folder.mkdir(parents=True)
    source = SAMPLE_COURSE / "solutions" / SAMPLE / f"{SAMPLE}.ipynb"
    (folder / source.name).write_text(release.release_text(source))
    assert release.topics(tmp_path) == [SAMPLE]
    assert release.release_notebook(SAMPLE, tmp_path) == sample_release()
