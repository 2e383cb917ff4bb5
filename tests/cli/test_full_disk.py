"""Does a full disk leave what was there, and no part of anything? No file may become larger here than some bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Run

resource = pytest.importorskip("resource")


@contextmanager
def nearly_full(size: int) -> Iterator[None]:
    """No file may become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("measure {} --interval none --json", "o.json"),
        ("test {} --resamples 19 --json", "o.json"),
        ("draw {} --out", "o.json"),
        ("draw {} --out", "o.csv"),
        ("draw {} --out", "o.svg"),
        ("draw {} --out", "o.png"),
        ("fit {} --method temperature --out", "o.json"),
        ("tally {} --out", "o.tally.json"),
        ("apply c.json {} --out", "o.csv"),
        ("apply c.json {} --out", "o.jsonl"),
        ("apply c.json {} --out", "o.parquet"),
        ("apply c.json {} --out", "o.feather"),
        ("apply c.json {} --out", "o.npz"),
    ],
)
def test_a_full_disk_leaves_the_old_file_and_is_a_coded_error(
    run: Run, overconfident: str, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, out: str
) -> None:
    monkeypatch.chdir(folder)
    if words.startswith("apply"):
        assert run("fit", overconfident, "--method", "temperature", "--out", "c.json").exit_code == 0
    before = sorted(os.listdir())
    Path(out).write_bytes(b"old")
    with nearly_full(100):
        done = run(*words.format(overconfident).split(), out)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] in ("error TO602", "error TO703", "error TO503", "error TO407", "error TO314")
    assert f"{out}: File too large" in done.stderr
    assert Path(out).read_bytes() == b"old"
    assert sorted(os.listdir()) == sorted([*before, out])
