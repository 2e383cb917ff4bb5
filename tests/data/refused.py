"""What a refusal owes the reader: a code, the problem, what was got, the fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trueodds import InputError


@contextmanager
def refused(code: str, *got: str, fix: str = "") -> Iterator[None]:
    """The block raises an InputError of this code whose `got` names each of these, and whose fix has that word."""
    with pytest.raises(InputError) as caught:
        yield
    error = caught.value
    assert error.code == code, str(error)
    assert error.problem.strip(), str(error)
    assert error.got.strip() or error.code == "TO202", str(error)  # an unknown setting is named in the problem
    assert error.fix.strip(), str(error)
    for part in got:
        assert part in error.got, str(error)
    assert fix in error.fix, str(error)
    assert str(error).startswith(f"[{code}] ")
