"""--cost: a table of costs from a file, its columns matched by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trueodds as to
from tests.cli.conftest import Run

COST = [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]]  # four actions, three classes
NAMES = ["none", "watch", "treat", "refer"]


def written(folder: Path, text: str) -> Path:
    path = folder / "costs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_measure_and_test_read_costs_by_name(run: Run, overconfident: str, folder: Path) -> None:
    path = written(folder, "\n".join(",".join(map(str, row)) for row in COST))
    result = run("measure", overconfident, "--estimator", "decision_regret", "--cost", path, "--json", "-")
    assert json.loads(result.stdout) == to.measure(to.read(overconfident), "decision_regret", cost=COST).to_dict()
    result = run("test", overconfident, "--test", "decision_regret", "--cost", path, "--json", "-")
    assert json.loads(result.stdout) == to.test(to.read(overconfident), "decision_regret", cost=COST).to_dict()


@pytest.mark.slow
def test_an_audit_with_costs_has_a_section_for_them(run: Run, overconfident: str, folder: Path) -> None:
    page = folder / "a.html"
    json_path = folder / "a.json"
    result = run(
        "audit",
        overconfident,
        "--cost",
        by_named_classes(overconfident, folder),
        "--html",
        page,
        "--json",
        json_path,
        "--resamples",
        99,
    )
    assert result.exit_code == 0, result.output
    assert "Decision regret" in result.stdout
    assert "Regret by action" in page.read_text(encoding="utf-8")
    decisions = json.loads(json_path.read_text(encoding="utf-8"))["decisions"]
    same = to.measure(to.read(overconfident), "decision_regret", cost=COST, actions=NAMES)
    assert decisions["regret"] == same.to_dict()
    assert list(decisions["test"]["parts"]) == ["error"]


def by_named_classes(overconfident: str, folder: Path) -> Path:
    """The header holds the names that the rows' classes have."""
    classes = [str(name) for name in to.read(overconfident).collect().classes]
    order = [2, 0, 1]
    head = ",".join(["action", *(classes[c] for c in order)])
    lines = [",".join([name, *(str(cost[c]) for c in order)]) for name, cost in zip(NAMES, COST, strict=True)]
    return written(folder, "\n".join([head, *lines]))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "TO608"),
        ("a,b,c\n", "TO608"),
        ("0,1\n1,0\n", "TO608"),  # two columns for three classes
        ("0,1,2\n1,0\n", "TO608"),
        ("x,y,z\n0,1,2\n1,0,1\n", "TO608"),  # classes that the rows do not have
        ("0,1,2\n1,zero,1\n", "TO608"),
        ("0,1,inf\n1,0,1\n", "TO203"),
        ("0,1,1_0\n1,0,1\n", "TO608"),  # a number only in Python
        ('0,1,"2.5"3\n1,0,1\n', "TO311"),
        ('0,1,2\n1,0,"1\n', "TO311"),  # a quote that is not closed
        ("0,1,2\n0,4,1\n1,0,1\n", "TO608"),  # names of the classes, or costs?
    ],
)
def test_a_table_that_means_nothing_is_refused(
    run: Run, overconfident: str, folder: Path, text: str, code: str
) -> None:
    result = run("measure", overconfident, "--estimator", "decision_regret", "--cost", written(folder, text))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error {code}\n")
    assert "Traceback" not in result.output


def test_costs_are_refused_where_nothing_would_read_them(run: Run, overconfident: str, folder: Path) -> None:
    path = written(folder, "0,1,3\n1,0,1\n")
    assert "error TO603" in run("measure", overconfident, "--cost", path).stderr
    assert (
        "error TO602"
        in run("measure", overconfident, "--estimator", "decision_regret", "--cost", folder / "none.csv").stderr
    )
    statistic = run("test", overconfident, "--test", "consistency", "--statistic", "ece", "--cost", path).stderr
    assert "Pass --statistic utility" in statistic
    tally = folder / "t.tally.json"
    run("tally", overconfident, "--out", tally)
    refused = run("audit", tally, "--cost", path)
    assert refused.exit_code == 2
    assert "error TO403" in refused.stderr


HELP_FILE = "action,no,yes\nwait,0,4\ntreat,1,0\n"  # as `--help` and the errors describe it


@pytest.fixture
def treated(folder: Path) -> Path:
    """Five rows, of which costs of 4 and 1 would treat those with more than 20 %."""
    path = folder / "treated.csv"
    rows = [("no", 0.1), ("yes", 0.1), ("no", 0.5), ("yes", 0.5), ("yes", 0.9)]
    path.write_text("\n".join(["label,p_no,p_yes", *(f"{y},{1 - p},{p}" for y, p in rows)]), encoding="utf-8")
    return path


def test_utility_takes_the_file_that_the_help_describes(run: Run, treated: Path, folder: Path) -> None:
    result = run("measure", treated, "--estimator", "utility", "--cost", written(folder, HELP_FILE), "--json", "-")
    assert result.exit_code == 0, result.output
    # Two rows wait, with an expected cost of .4 and costs of 0 and 4. The others are treated at an expected cost of .5,
    # .5 and .1, and costs of 1, 0 and 0. In order of the utility (−.5 twice, −.4 twice, −.1) realized minus expected
    # are −.5 + .5, .4 − 3.6 and .1, so that the largest gap is that of the rows that wait, 3.2 of 5 rows.
    assert json.loads(result.stdout)["value"] == pytest.approx(3.2 / 5)


@pytest.mark.parametrize("statistic", ["utility", "decision_regret"])
def test_a_consistency_test_of_a_statistic_with_costs_takes_the_same_file(
    run: Run, treated: Path, folder: Path, statistic: str
) -> None:
    path = written(folder, HELP_FILE)
    options = ("--test", "consistency", "--set", f"statistic={statistic}", "--cost", path)
    result = run("test", treated, *options, "--resamples", 39)
    assert result.exit_code == 0, result.output


def test_costs_are_read_as_files_of_predictions_are(run: Run, treated: Path, folder: Path) -> None:
    def regret(text: str) -> float:
        path = written(folder, text)
        result = run("measure", treated, "--estimator", "decision_regret", "--cost", path, "--json", "-")
        assert result.exit_code == 0, result.output
        return float(json.loads(result.stdout)["value"])

    comma = regret('action,no,yes\r\n"wait, then see",0,2.5\r\ntreat,1,0\r\n')
    assert regret("action;no;yes\nwait;0;2,5\ntreat;1;0\n") == comma
    assert regret("# costs in euros\naction\tno\tyes\nwait\t0\t2.5\n\ntreat\t1\t0\n") == comma
