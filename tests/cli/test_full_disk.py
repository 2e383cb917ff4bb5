"""Does a full disk leave what was there, and no part of anything? No file may become larger here than some bytes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Run

resource = pytest.importorskip("resource")


@contextmanager
def nearly_full(size: int) -> Iterator[None]:
    """No file may become larger, and no bytecode is written: Python 3.11 would keep a part of it and fail later."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
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


UNWRITABLE = "/sys/x.json"  # no file can be created there, and permissions do not tell it to the superuser


@pytest.mark.skipif(not os.access("/sys", os.W_OK), reason="needs a folder with permission but without files")
@pytest.mark.parametrize(
    "words",
    ["audit {} --json", "audit {} --html", "measure {} --json", "test {} --json", "fit {} --out", "tally {} --out"],
)
def test_an_output_that_cannot_be_written_is_an_error_before_the_work(run: Run, folder: Path, words: str) -> None:
    (folder / "broken.csv").write_text("never read\n", encoding="utf-8")  # reading it would be the first error
    done = run(*words.format(folder / "broken.csv").split(), UNWRITABLE)
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO602")
    assert "/sys/x.json: " in done.stderr


@pytest.mark.parametrize("words", ["audit {} --resamples 39 --json", "measure {} --interval none --json"])
def test_a_report_is_printed_although_its_file_cannot_be_written(
    run: Run, overconfident: str, folder: Path, words: str
) -> None:
    with nearly_full(100):
        done = run(*words.format(overconfident).split(), folder / "o.json")
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, "error TO602")
    assert "ece" in done.stdout.lower()
    assert not (folder / "o.json").exists()


def test_the_check_of_an_output_leaves_what_was_there(run: Run, folder: Path) -> None:
    (folder / "broken.csv").write_text("never read\n", encoding="utf-8")
    (folder / "old.json").write_text("old", encoding="utf-8")
    for name in ("old.json", "new.json"):
        assert run("measure", folder / "broken.csv", "--json", folder / name).exit_code == 2
    assert (folder / "old.json").read_text(encoding="utf-8") == "old"
    assert sorted(os.listdir(folder)) == ["broken.csv", "old.json"]
