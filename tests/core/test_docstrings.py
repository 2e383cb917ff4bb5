"""Are entries of parameters that are written once inserted where a docstring refers to them?"""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass

import pytest

from trueodds.core.docstrings import insert_shared_parameters
from trueodds.core.settings import Settings
from trueodds.core.signatures import checks_arguments


@dataclass(frozen=True)
class Base(Settings):
    """A base class.

    Parameters
    ----------
    size : int, default=3
        Number of cells:

        - one, or
        - more.
    low, high : float
        The ends.

    Raises
    ------
    InputError
        TO203 if the size is unknown.
    """

    size: int = 3
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class Derived(Base):
    """A class with the same parameters.

    Parameters
    ----------
    size : int, default=5, as in `Base`
    low, high : as in `Base`

    Raises
    ------
    InputError : as in `Base`
    """

    size: int = 5


COMPLETE = """\
A class with the same parameters.

Parameters
----------
size : int, default=5
    Number of cells:

    - one, or
    - more.
low : float
    The ends.
high : float
    The ends.

Raises
------
InputError
    TO203 if the size is unknown."""


def test_the_docstring_of_a_class_gets_the_entries_of_its_base_class() -> None:
    assert inspect.getdoc(Derived) == COMPLETE


@dataclass(frozen=True)
class Wider(Base):
    """A class with one more parameter.

    Parameters
    ----------
    size : int, default=5
        Number of columns.
    width : float
        The width.

    Notes
    -----
    Units: none.
    """

    size: int = 5
    width: float = 0.0


WIDER = """\
A class with one more parameter.

Parameters
----------
size : int, default=5
    Number of columns.
low : float
    The ends.
high : float
    The ends.
width : float
    The width.

Raises
------
InputError
    TO203 if the size is unknown.

Notes
-----
Units: none."""


def test_a_class_gets_the_entries_of_inherited_fields_and_the_errors_that_it_does_not_describe() -> None:
    assert inspect.getdoc(Wider) == WIDER


def test_the_docstring_of_a_function_gets_the_entries_of_a_class_or_function_of_its_module() -> None:
    @checks_arguments
    def outer(size: int = 3) -> int:
        """Add.

        Parameters
        ----------
        size : as in `Base`
        """
        return size

    assert "Number of cells" in (outer.__doc__ or "")
    assert "as in" not in (outer.__doc__ or "")


def test_a_reference_to_an_unknown_entry_remains() -> None:
    def lost(size: int, width: int) -> int:
        """Add.

        Parameters
        ----------
        size : as in `Nothing`
        width : as in `Base`
        """
        return size + width

    docstring = lost.__doc__
    assert insert_shared_parameters(lost).__doc__ == docstring


@pytest.mark.slow
def test_without_docstrings_the_classes_are_made_all_the_same() -> None:
    code = "from trueodds.estimators import ESTIMATORS; print(ESTIMATORS.load('mce').name)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert done.stdout.strip() == "mce", done.stderr
