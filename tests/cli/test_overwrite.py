"""Is nothing that is read ever written over, and no output by another one?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of predictions, a link to it, a tally and a calibrator, all of which must stay."""
    monkeypatch.chdir(folder)
    for name in ("x.csv", "m.tally.json", "cal.json"):
        Path(name).write_text(f"{name} stays")
    os.link("x.csv", "hard.csv")
    Path("soft.csv").symlink_to("x.csv")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "audit x.csv --html x.csv",
        "audit x.csv --json x.csv",
        "audit x.csv --json ../{here}/./x.csv",
        "audit x.csv --json hard.csv",
        "audit soft.csv --json x.csv",
        "audit x.csv --json soft.csv",
        "audit *.csv --html x.csv",
        "audit nowhere.csv x.csv --html x.csv",
        "measure x.csv --json x.csv",
        "test x.csv --json x.csv",
        "draw x.csv --out x.csv",
        "fit x.csv --out x.csv",
        "tally x.csv --out x.csv",
        "apply cal.json x.csv --out x.csv",
        "apply cal.json x.csv --out cal.json",
        "merge m.tally.json m.tally.json --out m.tally.json",
        "audit m.tally.json --json m.tally.json",
    ],
)
def test_a_file_that_is_read_is_never_written(run: Run, here: Path, words: str) -> None:
    done = run(*words.format(here=here.name).split())
    lines = done.stderr.splitlines()
    assert (done.exit_code, lines[0]) == (2, "error TO603")
    assert lines[1].endswith("would overwrite a file that is read.")
    assert lines[2].removeprefix("got: ") in words.format(here=here.name)
    assert [Path(name).read_text() for name in ("x.csv", "m.tally.json", "cal.json")] == [
        "x.csv stays",
        "m.tally.json stays",
        "cal.json stays",
    ]


def test_two_outputs_are_two_files(run: Run, here: Path) -> None:
    done = run("audit", "x.csv", "--html", "a", "--json", here / "a")
    assert done.stderr.splitlines()[:2] == ["error TO603", "problem: --html and --json would write into the same file."]
    assert not (here / "a").exists()


def test_a_file_does_not_go_to_stdout(run: Run, here: Path) -> None:
    assert run("fit", "x.csv", "--out", "-").stderr.startswith("error TO603")
    assert not (here / "-").exists()


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a null device")
def test_a_device_is_no_file_that_could_be_lost(run: Run, over: str) -> None:
    assert run("measure", over, "--interval", "none", "--json", "/dev/null").exit_code == 0
