"""What the course's tests share: figures without a screen, the mark `gpu`."""

from tests.conftest import _pytest_stays_the_main_module, pytest_runtest_setup

__all__ = ["_pytest_stays_the_main_module", "pytest_runtest_setup"]
