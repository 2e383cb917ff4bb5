"""Do all commands read text files as other tools write them, and do the remedies of errors work as they are printed?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import Run
from tests.cli.test_faults import labelled

rng = np.random.default_rng(0)
P = rng.beta(2, 3, 300).round(4)
Y = (rng.random(300) < P).astype(int)
BIN = np.ceil(P * 15).clip(1).astype(int) - 1
ECE = np.abs(np.bincount(BIN, P, 15) - np.bincount(BIN, Y, 15)).sum() / 300


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({"label": Y, "p_0": 1 - P, "p_1": P} | more)


def measured(run: Run, *words: object) -> float:
    result = run("measure", *words, "--interval", "none", "--json", "-")
    assert result.exit_code == 0, result.output
    return float(json.loads(result.stdout)["value"])


def options_of_fix(run: Run, *words: object) -> list[str]:
    """The options that the remedy of the error names, split as a shell does."""
    error = labelled(run("measure", *words).stderr)
    return shlex.split(error["fix"].partition(": pass ")[2].removesuffix("."))


@pytest.mark.parametrize(
    ("name", "separator", "decimal"),
    [
        ("eu.csv", ";", ","),
        ("semi.csv", ";", "."),
        ("tab.csv", "\t", "."),
        ("pipe.csv", "|", "."),
        ("t.txt", "\t", "."),
    ],
)
def test_a_file_with_a_single_possible_separator_is_read_with_a_note(
    run: Run, folder: Path, name: str, separator: str, decimal: str
) -> None:
    frame().to_csv(folder / name, sep=separator, decimal=decimal, index=False)
    assert measured(run, folder / name) == pytest.approx(ECE)
    for command in (("measure",), ("measure", "--mode", "tally"), ("test", "--test", "spiegelhalter")):
        assert "[TN310]" in run(command[0], folder / name, *command[1:]).stdout
    explicit = run("measure", folder / name, "--separator", separator, "--decimal", decimal)
    assert explicit.exit_code == 0
    assert "TN310" not in explicit.stdout


def test_a_file_with_blanks_is_read_by_the_option_that_the_error_names(run: Run, folder: Path) -> None:
    frame().to_csv(folder / "space.csv", sep=" ", index=False)
    options = options_of_fix(run, folder / "space.csv")
    assert options == ["--separator", " "]
    assert measured(run, folder / "space.csv", *options) == pytest.approx(ECE)


def test_a_quoted_decimal_comma_is_read_by_the_option_that_the_error_names(run: Run, folder: Path) -> None:
    frame().to_csv(folder / "a.csv", decimal=",", index=False)
    options = options_of_fix(run, folder / "a.csv")
    assert options == ["--decimal", ","]
    assert measured(run, folder / "a.csv", *options) == pytest.approx(ECE)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_wrong_separator_is_replaced_by_the_one_that_the_error_names(run: Run, folder: Path, separator: str) -> None:
    frame().to_csv(folder / "a.csv", sep=separator, index=False)
    options = options_of_fix(run, folder / "a.csv", "--separator", "|")
    assert measured(run, folder / "a.csv", *options) == pytest.approx(ECE)


@pytest.mark.slow
def test_every_command_of_rows_takes_the_options(run: Run, folder: Path) -> None:
    file, plain, options = folder / "a.txt", folder / "plain.csv", ("--separator", ";", "--decimal", ",")
    site = np.where(np.arange(300) % 2 == 0, "north", "south")
    frame(site=site).to_csv(file, sep=";", decimal=",", index=False)
    frame(site=site).to_csv(plain, index=False)
    other = folder / "b.txt"
    frame(p_0=1 - P**2, p_1=P**2).to_csv(other, sep=";", decimal=",", index=False)
    cal, tally = folder / "cal.json", folder / "a.tally.json"
    commands: list[list[object]] = [
        ["audit", file, "--resamples", "99"],
        ["test", file, "--test", "spiegelhalter"],
        ["compare", file, other, "--paired"],
        ["draw", file, "--out", folder / "a.csv"],
        ["groups", file, "--group", "site", "--resamples", "99"],
        ["tally", file, "--out", tally],
        ["fit", file, "--method", "platt", "--out", cal],
        ["apply", cal, file, "--out", folder / "out.csv"],
    ]
    for command in commands:
        result = run(*command, *options)
        assert result.exit_code == 0, result.output
    assert measured(run, tally) == pytest.approx(measured(run, plain), abs=1e-12)
    assert run("apply", cal, plain, "--out", folder / "of_plain.csv").exit_code == 0
    assert (folder / "out.csv").read_text(encoding="utf-8") == (folder / "of_plain.csv").read_text(encoding="utf-8")


def test_options_of_text_files_are_for_those_of_a_comparison_that_are_such(run: Run, folder: Path) -> None:
    frame().to_csv(folder / "a.csv", sep=" ", index=False)
    frame(p_0=1 - P**2, p_1=P**2).to_parquet(folder / "b.parquet")
    assert run("compare", folder / "a.csv", folder / "b.parquet", "--separator", " ").exit_code == 0
    error = labelled(run("measure", folder / "b.parquet", "--separator", ";").stderr)
    assert (error["code"], error["fix"]) == ("TO205", "Omit it.")
    assert measured(run, folder / "b.parquet") > 0


@pytest.mark.parametrize(("name", "head"), [("out.csv", "label,p_1\n"), ("out.tsv", "label\tp_1\n")])
def test_apply_writes_commas_or_tabs_and_decimal_points(run: Run, folder: Path, name: str, head: str) -> None:
    frame().drop(columns="p_0").to_csv(folder / "a.csv", sep=";", decimal=",", index=False)
    assert run("fit", folder / "a.csv", "--method", "platt", "--out", folder / "cal.json").exit_code == 0
    applied = run("apply", folder / "cal.json", folder / "a.csv", "--out", folder / name)
    assert "[TN310]" in applied.stdout
    assert (folder / name).read_text(encoding="utf-8").startswith(head)
    assert measured(run, folder / name) < ECE


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        (lambda p: f"{100 * p:.2f}%", "TN312"),
        (lambda p: ("*" if p > 0.5 else "") + str(p), "TN313"),
        (lambda p: f'"[{1 - p:.4f} {p:.4f}]"', None),
    ],
    ids=["percent sign", "star", "list"],
)
def test_numbers_in_another_form_are_read(run: Run, folder: Path, cell: Any, code: str | None) -> None:
    rows = "\n".join(f"{y},{cell(p)}" for y, p in zip(Y, P, strict=True))
    (folder / "a.csv").write_text(f"outcome,risk\n{rows}\n", encoding="utf-8")
    assert measured(run, folder / "a.csv", "--label", "outcome", "--probs", "risk") == pytest.approx(ECE)
    shown = run("measure", folder / "a.csv", "--label", "outcome", "--probs", "risk").stdout
    assert code is None or f"[{code}]" in shown


def test_percentages_with_a_sign_are_recalibrated_on_one_scale(run: Run, folder: Path) -> None:
    (folder / "a.csv").write_text(
        "c,ok\n" + "\n".join(f"{100 * p:.2f}%,{y}" for y, p in zip(Y, P, strict=True)), encoding="utf-8"
    )
    (folder / "b.csv").write_text(
        "c,ok\n" + "\n".join(f"{p:.4f},{y}" for y, p in zip(Y, P, strict=True)), encoding="utf-8"
    )
    names = ("--confidence", "c", "--correct", "ok")
    assert run("fit", folder / "b.csv", *names, "--method", "platt", "--out", folder / "cal.json").exit_code == 0
    written = []
    for file, options in (("a.csv", ["--percent"]), ("a.csv", []), ("b.csv", [])):
        applied = run("apply", folder / "cal.json", folder / file, *names[:2], *options, "--out", folder / "out.csv")
        assert applied.exit_code == 0, applied.output
        written.append(pd.read_csv(folder / "out.csv")["c"].to_numpy() / (100 if options else 1))
    assert np.allclose(written[0], written[2], atol=1e-12)
    assert np.allclose(written[1], written[2], atol=1e-12)


def test_names_as_tidymodels_and_knime_write_them_are_read(run: Run, folder: Path) -> None:
    """Regression: three tries were needed until the star, the names, and the classes were right."""
    names = np.where(Y == 1, "Yes", "No")
    tidy = {".pred_class": np.where(P > 0.5, "Yes", "No"), ".pred_No": 1 - P, ".pred_Yes": P, "truth": names}
    pd.DataFrame(tidy).to_csv(folder / "tidy.csv", index=False)
    knime = {"Churn": names, "P (Churn=No)": 1 - P, "P (Churn=Yes)": P}
    pd.DataFrame(knime).to_csv(folder / "knime.csv", index=False)
    for file, label, probs in (
        ("tidy.csv", "truth", ".pred_*"),
        ("tidy.csv", "truth", ".pred_No,.pred_Yes"),
        ("knime.csv", "Churn", "P (*)"),
        ("knime.csv", "Churn", "P (Churn=No),P (Churn=Yes)"),
    ):
        assert measured(run, folder / file, "--label", label, "--probs", probs) == pytest.approx(ECE)
    star = ("--label", "Churn", "--probs", "P (*)")
    assert run("fit", folder / "knime.csv", *star, "--method", "platt", "--out", folder / "cal.json").exit_code == 0
    applied = run("apply", folder / "cal.json", folder / "knime.csv", *star[2:], "--out", folder / "out.csv")
    assert applied.exit_code == 0, applied.output
    assert "matched by position" not in applied.stdout


@pytest.mark.slow
def test_answers_are_read_from_a_table_with_semicolons(run: Run, folder: Path) -> None:
    rows = "\n".join(f"{str(p).replace('.', ',')};{'pass' if y else 'fail'}" for y, p in zip(Y, P, strict=True))
    (folder / "a.csv").write_text(f"c;ok\n{rows}\n", encoding="utf-8")
    options = ("--confidence", "c", "--correct", "ok")
    assert run("answers", folder / "a.csv", *options).exit_code == 0
    assert run("answers", folder / "a.csv", *options, "--separator", ";", "--decimal", ",").exit_code == 0
    assert measured(run, folder / "a.csv", *options) == pytest.approx(ECE)


def test_a_region_in_the_names_of_folders_is_a_group(run: Run, folder: Path) -> None:
    for i, region in enumerate(("north", "south")):
        (folder / "data" / f"region={region}").mkdir(parents=True)
        frame()[i::2].to_parquet(folder / "data" / f"region={region}" / "part-0.parquet")
    assert measured(run, folder / "data") == pytest.approx(ECE)
    shown = run("groups", folder / "data", "--group", "region", "--resamples", "99")
    assert shown.exit_code == 0, shown.output
    assert "north" in shown.stdout
    assert "south" in shown.stdout


def test_remote_paths_are_refused_by_every_command(run: Run, folder: Path) -> None:
    for words in (["audit", "s3://b/a.parquet"], ["compare", "s3://b/a.parquet", "s3://b/b.parquet"]):
        error = labelled(run(*words).stderr)
        assert (error["code"], error["problem"]) == ("TO301", "Remote paths are not read.")
