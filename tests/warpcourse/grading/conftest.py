"""What the tests of the grading share: the mark `sandbox`, and one supply of warmed zygotes per session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `sandbox` where bubblewrap is missing. With WARPLAB_REQUIRE_SANDBOX=1 it fails instead."""
    if item.get_closest_marker("sandbox") is None:
        return
    sandbox = find()
    if sandbox.kind == "bubblewrap":
        return
    if os.environ.get("WARPLAB_REQUIRE_SANDBOX") == "1":
        pytest.fail(f"WARPLAB_REQUIRE_SANDBOX is set. {sandbox.describe()}", pytrace=False)
    pytest.skip(f"needs bubblewrap. {sandbox.describe()}")


@pytest.fixture(scope="session")
def zygotes() -> Iterator[Zygotes]:
    """Zygotes that have imported what the course's notebooks need, in the best sandbox that works here."""
    with Zygotes(find()) as zygotes:
        yield zygotes
