"""Paths of files to be written: one that ends with a separator names a folder, for every method that writes a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trueodds as to
from trueodds.core.errors import InputError

Y, P = [0, 1, 1, 0] * 10, [0.2, 0.7, 0.9, 0.3] * 10


@pytest.mark.parametrize(
    ("name", "save"),
    [
        ("a.svg", lambda path: to.draw(Y, P, "reliability").save(path)),
        ("a.csv", lambda path: to.draw(Y, P, "reliability").save(path)),
        ("a.svg", lambda path: to.draw({"a": (Y, P), "b": (Y, P)}, "comparison").save(path)),
        ("a.json", lambda path: to.tally(Y, P).save(path)),
        ("a.json", lambda path: to.fit((Y, P), "temperature").save(path)),
        ("a.html", lambda path: to.audit(Y, P, resamples=39).to_html(path)),
    ],
)
def test_a_path_that_ends_with_a_separator_is_a_folder(tmp_path: Path, name: str, save: Any) -> None:
    with pytest.raises(InputError, match=r"TO\d\d\d.*folder"):
        save(f"{tmp_path}/{name}/")
    assert list(tmp_path.iterdir()) == []
