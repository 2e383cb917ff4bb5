"""The package does not grow: its numbers stay within the limits of `tests/size.py`."""

import subprocess
import sys

import pytest

from tests.size import LIMITS, sizes


@pytest.mark.slow
def test_the_package_is_not_larger_than_its_limits_which_are_lowered_with_the_numbers():
    numbers = sizes()
    assert {name: number for name, number in numbers.items() if number > LIMITS[name]} == {}
    loose = {name: number for name, number in numbers.items() if number < 0.99 * LIMITS[name]}
    assert loose == {}, "set these limits to the numbers"


@pytest.mark.slow
def test_calls_enter_no_more_functions_than_their_limits():
    """In a new process, because functions whose result is stored are entered once only."""
    finished = subprocess.run([sys.executable, "-m", "tests.size"], capture_output=True, encoding="utf-8")
    assert finished.returncode == 0, finished.stdout
