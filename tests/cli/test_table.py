"""table: the command prints what the library returns, in four formats."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.cli.conftest import Run
from trueodds.api.table_results import ResultTable
from trueodds.cli import output

QUICK = ("--measure", "ece", "--measure", "brier", "--resamples", 200)


def the_table(overconfident: str, honest: str) -> ResultTable:
    models = {"over": to.read(overconfident), "honest": to.read(honest)}
    return to.table(models, ["ece", "brier"], resamples=200)


def test_every_format_is_that_of_the_library(run: Run, overconfident: str, honest: str) -> None:
    table = the_table(overconfident, honest)
    texts = {"markdown": table.to_markdown(), "latex": table.to_latex(), "csv": table.to_csv()}
    for name, text in texts.items():
        assert run("table", overconfident, honest, *QUICK, "--format", name).stdout == text.rstrip("\n") + "\n"
    assert run("table", overconfident, honest, *QUICK).stdout.startswith(table.describe())
    assert json.loads(run("table", overconfident, honest, *QUICK, "--json", "-").stdout) == table.to_dict()


def test_lenses_names_and_bold_values_are_options(run: Run, overconfident: str, honest: str) -> None:
    options = ("--lens", "confidence", "--lens", "classwise", "--names", "A,B", "--no-bold", "--format", "csv")
    lines = run("table", overconfident, honest, "--measure", "ece", "--interval", "none", *options).stdout.splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [
        [name, f"ece ({lens})", "ece", lens] for name in "AB" for lens in ("confidence", "classwise")
    ]
    assert all(line.endswith("False") for line in lines[1:])


def test_notes_stay_out_of_a_redirected_table(run: Run, overconfident: str) -> None:
    result = run("table", overconfident, overconfident, "--names", "a,b", "--measure", "ece", "--resamples", 20,
                 "--format", "csv")  # fmt: skip
    assert "TN2" not in result.stdout
    assert "TN2" in result.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--measure", "eec"], "TO201"),
        (["--lens", "classes"], "TO204"),
        (["--format", "word"], "TO601"),
        (["--names", "one"], "TO205"),
        (["--names", "one,one"], "TO205"),
        (["--set", "depth=3"], "TO202"),
    ],
)
def test_invalid_options_are_coded(run: Run, overconfident: str, honest: str, words: list[str], code: str) -> None:
    result = run("table", overconfident, honest, *words)
    assert result.exit_code == 2
    assert f"error {code}" in result.stderr


@pytest.mark.parametrize("table_format", ["csv", "markdown", "latex"])
def test_an_exported_table_is_not_wrapped_on_a_narrow_terminal(
    run: Run, overconfident: str, honest: str, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    words = ["table", overconfident, honest, "--measure", "brier", "--measure", "ece", "--no-bold"]
    piped = run(*words, "--format", table_format).stdout
    monkeypatch.setattr(output, "terminal_width", lambda stream=None: 40)
    assert run(*words, "--format", table_format).stdout == piped


def test_a_table_of_text_fits_the_terminal(
    run: Run, overconfident: str, honest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (60, 100):
        monkeypatch.setattr(output, "terminal_width", lambda stream=None, width=width: width)
        result = run("table", overconfident, honest, "--measure", "brier", "--measure", "ece", "--measure", "log_loss")
        table = result.stdout.partition("\n")[2].partition("\n  [")[0]
        assert max(map(len, table.splitlines())) <= width
        assert not any(line.startswith("  [0") for line in table.splitlines())  # no wrapped cell


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_csv_in_a_pseudo_terminal_is_what_a_pipe_receives(overconfident: str, honest: str) -> None:
    import pty

    words = [sys.executable, "-m", "trueodds", "table", overconfident, honest, "--measure", "brier", "--no-bold"]
    words += ["--format", "csv"]
    piped = subprocess.run(words, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    main_end, terminal = pty.openpty()
    environment = os.environ | {"COLUMNS": "60", "LINES": "24"}
    process = subprocess.Popen(words, stdout=terminal, stderr=subprocess.DEVNULL, env=environment)
    os.close(terminal)
    shown = b""
    while True:
        try:
            received = os.read(main_end, 4096)
        except OSError:  # Linux reports the closed end as an error
            break
        if not received:
            break
        shown += received
    os.close(main_end)
    assert process.wait() == 0
    assert shown.decode().replace("\r\n", "\n") == piped
    assert max(map(len, piped.splitlines())) > 60


def test_a_column_of_segments_is_an_option(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p, site = rng.random(300), np.arange(300) % 2
    y = (rng.random(300) < p).astype(int)
    paths = [tmp_path / "true.csv", tmp_path / "low.csv"]
    for path, probabilities in zip(paths, (p, p**3), strict=True):
        lines = [f"{label},{1 - x},{x},{value}" for label, x, value in zip(y, probabilities, site, strict=True)]
        path.write_text("\n".join(["label,p_0,p_1,site", *lines]), encoding="utf-8")
    options = (*paths, "--measure", "ece", "--by", "site", "--resamples", 199)
    table = to.table({path.stem: to.read(str(path), group="site") for path in paths}, ["ece"], by="site", resamples=199)
    assert json.loads(run("table", *options, "--json", "-").stdout) == table.to_dict()
    assert run("table", *options).stdout.startswith(table.describe())
    assert [cell.status for cell in table.cells if cell.model == "low"] == ["miscalibrated"] * 2
    assert (
        "TO409" in run("table", *paths, "--by", "region").stderr
        or run("table", *paths, "--by", "region").exit_code == 2
    )


def test_the_column_of_segments_is_called_by_and_tallies_have_it(run: Run, tmp_path: Path) -> None:
    lines = [f"{row % 2},{0.3 + 0.4 * (row % 2)},{'ab'[row // 50]}" for row in range(100)]
    rows, tally = tmp_path / "rows.csv", tmp_path / "rows.tally.json"
    rows.write_text("\n".join(["label,p_1,site", *lines]), encoding="utf-8")
    wrong = run("table", rows, "--by", "sit", "--measure", "brier").stderr
    assert "got: --by sit" in wrong
    assert "Select it with --by." in wrong
    assert "--group" not in wrong
    run("tally", rows, "--group", "site", "--out", tally)
    assert "× 2 segments ×" in run("table", tally, "--by", "site", "--measure", "ece").stdout
