"""Is nothing that is read ever written over, and no output by another one?"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def workdir(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of predictions, a link to it, a tally and a calibrator, all of which must stay."""
    monkeypatch.chdir(folder)
    for name in ("x.csv", "m.tally.json", "cal.json"):
        Path(name).write_text(f"{name} stays", encoding="utf-8")
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
def test_a_file_that_is_read_is_never_written(run: Run, workdir: Path, words: str) -> None:
    done = run(*words.format(here=workdir.name).split())
    lines = done.stderr.splitlines()
    assert (done.exit_code, lines[0]) == (2, "error TO603")
    assert lines[1].endswith("would overwrite a file that is read.")
    assert lines[2].removeprefix("got: ") in words.format(here=workdir.name)
    assert [Path(name).read_text(encoding="utf-8") for name in ("x.csv", "m.tally.json", "cal.json")] == [
        "x.csv stays",
        "m.tally.json stays",
        "cal.json stays",
    ]


def test_two_outputs_are_two_files(run: Run, workdir: Path) -> None:
    done = run("audit", "x.csv", "--html", "a", "--json", workdir / "a")
    assert done.stderr.splitlines()[:2] == ["error TO603", "problem: --html and --json would write to the same file."]
    assert not (workdir / "a").exists()


def test_a_file_does_not_go_to_stdout(run: Run, workdir: Path) -> None:
    assert run("fit", "x.csv", "--out", "-").stderr.startswith("error TO603")
    assert not (workdir / "-").exists()


@pytest.fixture
def places(workdir: Path) -> Path:
    """Beside the files: a null device of our own, a link, and a file of a mode of its own."""
    try:
        os.mknod("null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no devices in here")
    Path("real.json").write_text("old", encoding="utf-8")
    Path("real.json").chmod(0o640)
    Path("link.json").symlink_to("real.json")
    Path("link.svg").symlink_to("null")
    return workdir


@pytest.mark.parametrize("path", ["loop.json", "loop.json/out.json", "~nosuchuser/out.json"])
@pytest.mark.parametrize("words", ["measure {} --json", "fit {} --out", "tally {} --out", "draw {} --out"])
def test_an_output_that_leads_nowhere_is_refused_with_its_path(
    run: Run, overconfident: str, workdir: Path, words: str, path: str
) -> None:
    # Path.resolve raised a RuntimeError, which was reported as an internal error.
    Path("loop.json").symlink_to("loop.json")
    lines = run(*words.format(overconfident).split(), path).stderr.splitlines()
    assert lines[:2] == ["error TO602", "problem: The file cannot be written."]
    assert lines[2].startswith(f"got: {path}: ")


def test_a_link_to_no_file_is_refused_with_its_path_where_it_is_read(run: Run, workdir: Path) -> None:
    # The remedy was to write the same name again.
    Path("loop.csv").symlink_to("loop.csv")
    assert run("measure", "loop.csv").stderr.splitlines()[1:4] == [
        "problem: The symbolic link leads to no file.",
        "got: 'loop.csv'",
        "fix: Correct the link.",
    ]


WRITERS = [
    "measure {} --interval none --json",
    "audit {} --resamples 39 --json",
    "audit {} --resamples 39 --html",
    "fit {} --method temperature --out",
    "tally {} --out",
]


@pytest.mark.parametrize("words", WRITERS)
def test_a_device_is_written_and_stays_a_device(run: Run, overconfident: str, places: Path, words: str) -> None:
    done = run(*words.format(overconfident).split(), "null")
    assert done.exit_code == 0, done.stderr
    assert stat.S_ISCHR(os.stat("null").st_mode)


def test_a_picture_goes_through_a_link_to_a_device(run: Run, overconfident: str, places: Path) -> None:
    assert run("draw", overconfident, "--out", "link.svg").exit_code == 0
    assert stat.S_ISCHR(os.stat("null").st_mode)
    assert Path("link.svg").is_symlink()


@pytest.mark.parametrize("words", WRITERS)
def test_a_link_stays_and_its_file_keeps_its_mode(run: Run, overconfident: str, places: Path, words: str) -> None:
    done = run(*words.format(overconfident).split(), "link.json")
    assert done.exit_code == 0, done.stderr
    assert Path("link.json").is_symlink()
    assert len(Path("real.json").read_text(encoding="utf-8")) > 100
    assert stat.S_IMODE(os.stat("real.json").st_mode) == 0o640


def test_home_is_understood_where_files_are_written_as_where_they_are_read(
    run: Run, overconfident: str, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workdir))
    assert run("fit", overconfident, "--method", "temperature", "--out", "~/made.json").exit_code == 0
    assert run("measure", overconfident, "--interval", "none", "--json", "~/told.json").exit_code == 0
    assert run("apply", "~/made.json", overconfident, "--out", "~/better.csv").exit_code == 0
    assert {"made.json", "told.json", "better.csv"} <= {path.name for path in workdir.iterdir()}
