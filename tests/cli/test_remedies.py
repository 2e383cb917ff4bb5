"""Do the remedies of errors on the command line name options and columns that exist?"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from tests.cli.conftest import Run
from tests.cli.test_faults import labelled

FORECASTS_PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "forecasts.md"
rng = np.random.default_rng(0)
P = rng.random(60)
Y = (rng.random(60) < P).astype(int)


def table(path: Path, **columns: np.ndarray) -> str:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def good(folder: Path) -> str:
    return table(folder / "good.csv", label=Y, p_0=1 - P, p_1=P)


def test_columns_of_logits_are_named_as_they_are_called(run: Run, folder: Path) -> None:
    logits = table(folder / "logit.csv", label=Y, z_0=-P, z_1=3 * P - 1)
    assert labelled(run("audit", logits, "--probs", "z_*").stderr)["fix"] == "If these are logits, pass --logits 'z_*'."
    error = labelled(run("audit", logits).stderr)
    assert error["problem"].endswith("logit.csv matches 'p_*'.")
    assert error["fix"] == "If z_0, z_1 are meant, pass --probs 'z_*'; if they are logits, pass --logits 'z_*'."
    assert run("measure", logits, "--logits", "z_*").exit_code == 0


def test_numbered_columns_are_named_by_a_pattern_that_matches_nothing_else(run: Run, folder: Path) -> None:
    numbered = {f"p{i}": np.full_like(P, 0.2) for i in range(1, 6)}
    error = labelled(run("measure", table(folder / "five.csv", label=Y, **numbered)).stderr)
    assert error["fix"] == "If p1, p2, p3, … are meant, pass --probs 'p*'; if they are logits, pass --logits 'p*'."
    error = labelled(run("measure", table(folder / "more.csv", label=Y, price=P, **numbered)).stderr)
    assert error["fix"].endswith("Only * is a wildcard. Select one or more with --probs.")


def test_an_array_of_logits_is_named_if_probabilities_are_missing(run: Run, folder: Path) -> None:
    file = str(folder / "logits.npz")
    np.savez(file, label=Y, logits=np.stack([-P, P], axis=1))
    assert labelled(run("measure", file).stderr)["fix"] == "If logits holds the logits, pass --logits logits."
    assert run("measure", file, "--logits", "logits").exit_code == 0


def test_columns_of_which_a_class_is_missing_are_recognized_by_their_sums(run: Run, folder: Path) -> None:
    three = table(folder / "three.csv", label=Y, a=0.25 + 0 * P, b=0.5 + 0 * P, c=0.25 + 0 * P)
    error = labelled(run("measure", three, "--probs", "a,b").stderr)
    assert error["code"] == "TO104"
    assert "If a class is missing, pass the columns of all classes; if these are logits" in error["fix"]


@pytest.mark.parametrize("command", ["audit", "measure", "test", "tally"])
def test_a_file_of_a_regression_is_referred_to_the_page_of_forecasts(run: Run, folder: Path, command: str) -> None:
    heat = table(folder / "heat.csv", celsius=20 * P + 10.05, predicted=20 * P + 9.0)
    output = ("--out", folder / "heat.tally.json") if command == "tally" else ()
    for option in ("--probs", "--logits"):
        error = labelled(run(command, heat, "--label", "celsius", option, "predicted", *output).stderr)
        assert error["code"] == "TO106"
        assert error["fix"].startswith("These look like the outcomes of a regression: pass events")
        (title,) = re.findall(r"documentation, '(.*?)'", error["fix"])
        assert FORECASTS_PAGE.read_text(encoding="utf-8").startswith(f"# {title}\n")
        assert error["fix"].endswith(" If not, pass another --label C.")


def test_more_labels_than_classes_may_be_those_of_another_column(run: Run, folder: Path) -> None:
    file = table(folder / "x.csv", patient=np.arange(len(Y)), p_0=1 - P, p_1=P, label=Y)
    error = labelled(run("measure", file, "--label", "patient").stderr)
    assert error["code"] == "TO105"
    assert error["fix"].endswith(" If not, pass another --label C.")


def test_a_missing_column_is_answered_with_the_columns_in_their_order(run: Run, folder: Path) -> None:
    error = labelled(run("audit", table(folder / "x.csv", score=P, target=Y)).stderr)
    assert error["fix"] == (
        "If target is the outcome and score the probability of the event, pass --label target and --probs score."
    )
    error = labelled(run("audit", table(folder / "y.csv", score=P, age=P, sex=Y)).stderr)
    assert error["fix"] == (
        "The columns are score, age, sex. Name the column of the outcome with --label C and the columns of the"
        " probabilities with --probs 'p_*'."
    )
    error = labelled(run("audit", table(folder / "z.csv", p_0=1 - P, p_1=P, target=Y)).stderr)
    assert error["fix"] == "The columns are p_0, p_1, target. Select one with --label."


def test_a_file_of_other_names_is_answered_with_label_and_probabilities_at_once(run: Run, folder: Path) -> None:
    file = table(folder / "x.csv", prob_no=1 - P, prob_yes=P, answer=np.where(Y == 1, "yes", "no"))
    error = labelled(run("audit", file).stderr)
    assert error["fix"] == "If prob_no, prob_yes are the probabilities, pass --label answer and --probs 'prob_*'."
    assert run("measure", file, "--label", "answer", "--probs", "prob_*").exit_code == 0


def test_swapped_columns_are_answered_with_the_options_in_the_right_order(run: Run, folder: Path) -> None:
    error = labelled(run("audit", table(folder / "x.csv", score=P, y=Y), "--label", "score", "--probs", "y").stderr)
    assert (error["code"], error["fix"]) == ("TO109", "Swap the columns: --label y, --probs score.")
    assert "y_true" not in error["problem"] + error["got"]


def test_labels_1_and_2_are_answered_with_their_names(run: Run, folder: Path) -> None:
    file = table(folder / "x.csv", score=P, y=Y + 1)
    error = labelled(run("measure", file, "--label", "y", "--probs", "score").stderr)
    assert (error["code"], error["fix"]) == (
        "TO105",
        "Pass --classes 1,2 if score is the probability of the second class.",
    )
    right = run("measure", file, "--label", "y", "--probs", "score", "--classes", "1,2").stdout
    assert (
        right.replace(" (event: class 2)", "")
        == run("measure", table(folder / "0.csv", score=P, y=Y), "--label", "y", "--probs", "score").stdout
    )


def test_apply_names_the_columns_of_another_number_of_classes(run: Run, good: str, folder: Path) -> None:
    assert run("fit", good, "--method", "temperature", "--out", folder / "cal.json").exit_code == 0
    three = table(folder / "three.csv", label=Y, p_a=P / 2, p_b=P / 2, p_c=1 - P)
    error = labelled(run("apply", folder / "cal.json", three, "--out", folder / "out.csv").stderr)
    assert (error["code"], error["got"]) == ("TO501", "3 in the file, from the columns p_a, p_b, p_c")
    assert error["fix"].endswith("--probs a,b,c.")


def test_apply_says_that_logits_were_replaced_by_probabilities(run: Run, folder: Path) -> None:
    file = table(folder / "x.csv", score=4 * P - 2, label=Y)
    options = ("--logits", "score")
    assert run("fit", file, *options, "--method", "platt", "--out", folder / "cal.json").exit_code == 0
    applied = run("apply", folder / "cal.json", file, *options, "--out", folder / "out.csv")
    assert "Columns of logits were replaced by recalibrated probabilities: score → p." in applied.stdout
    assert (folder / "out.csv").read_text(encoding="utf-8").startswith("p,label\n")


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_credit_scores_as_logits_are_noted_and_calibrated_as_the_note_says(run: Run, folder: Path, method: str) -> None:
    scores = 300 + 550 * P
    file, saved, out = table(folder / "credit.csv", score=scores, label=Y), folder / "cal.json", folder / "out.csv"
    result = run("fit", file, "--logits", "score", "--method", method, "--out", saved)
    assert result.exit_code == 0
    assert "[TN193] In all rows the log odds are beyond ±37" in result.stdout + result.stderr
    assert run("apply", saved, file, "--logits", "score", "--out", out).exit_code == 0
    recalibrated = np.loadtxt(out, delimiter=",", skiprows=1)[:, 0]
    if method == "platt":
        # For a maximum likelihood fit with an intercept the targets have the mean of the fit: (N₁ + 1)/(N₁ + 2) for
        # events, 1/(N₀ + 2) for the others.
        n_events, n_others = Y.sum(), len(Y) - Y.sum()
        targets = np.where(Y == 1, (n_events + 1) / (n_events + 2), 1 / (n_others + 2))
        assert recalibrated.mean() == pytest.approx(targets.mean(), abs=1e-9)
        assert recalibrated @ scores == pytest.approx(targets @ scores, rel=1e-9)
    else:
        assert recalibrated == pytest.approx(IsotonicRegression().fit_transform(scores, Y), abs=1e-12)


def test_written_files_are_named_on_stderr(run: Run, good: str, folder: Path) -> None:
    page, report = folder / "report.html", folder / "report.json"
    audited = run("audit", good, "--resamples", "99", "--html", page, "--json", report)
    assert audited.stderr.splitlines() == [f"{page} written", f"{report} written"]
    assert run("measure", good, "--json", "-").stderr == ""


def test_a_page_of_the_command_line_names_options(run: Run, good: str, folder: Path) -> None:
    page, other = folder / "report.html", table(folder / "other.csv", label=Y, p_0=1 - P**2, p_1=P**2)
    for command in (("audit", good, "--resamples", "99"), ("compare", good, other)):
        assert run(*command, "--html", page).exit_code == 0
        notes = page.read_text(encoding="utf-8").partition('id="notes"')[2]
        assert "identify their origin with --cluster C" in notes or "pass --unpaired" in notes
        assert "cluster=" not in notes
        assert "paired=" not in notes


def test_the_class_of_a_single_column_is_the_second_of_classes(run: Run, folder: Path) -> None:
    named = table(folder / "named.csv", label=np.where(Y == 1, "yes", "no"), p_yes=P)
    error = labelled(run("audit", named).stderr)
    assert (error["code"], error["fix"]) == (
        "TO106",
        "Pass --classes no,yes if p_yes is the probability of the second class.",
    )
    right = run("measure", named, "--classes", "no,yes").stdout
    assert (
        right.replace(" (event: class yes)", "")
        == run("measure", table(folder / "numbers.csv", label=Y, p=P), "--probs", "p").stdout
    )
    yes_first = table(folder / "first.csv", label=np.where(Y == 1, "a", "b"), p_a=P)  # the class of p_a is a, not b
    assert "--classes b,a if p_a is" in labelled(run("audit", yes_first).stderr)["fix"]


def test_percent_of_columns_of_probabilities_says_what_to_do(run: Run, folder: Path) -> None:
    percent = table(folder / "pct.csv", label=Y, p_0=100 * (1 - P), p_1=100 * P)
    assert labelled(run("audit", percent, "--percent").stderr)["fix"] == (
        "Add --confidence F. Columns of probabilities are fractions: divide percentages by 100."
    )


@pytest.mark.parametrize(
    ("command", "words", "fix"),
    [
        ("measure", ["--metric", "ece"], "Did you mean --estimator?"),
        ("measure", ["--n-bins", "10"], "Did you mean --bins?"),
        ("audit", ["--target", "y"], "Did you mean --label?"),
        ("fit", ["--calibrator", "platt"], "Did you mean --method?"),
        ("draw", ["--plot", "corp"], "Did you mean --diagram?"),
        ("measure", ["--n-boot", "10"], "Did you mean --resamples?"),
        ("measure", ["--strategy", "quantile"], "Did you mean --partition equal-mass?"),
        ("test", ["--strategy=quantile"], "Did you mean --partition equal-mass?"),
        ("groups", ["--group", "g", "--adaptive"], "Did you mean --partition equal-mass?"),
        ("table", ["--estimator", "ece"], "Did you mean --measure?"),
        ("test", ["--estimator", "sce"], "Did you mean --statistic?"),
        ("compare", ["--alpha", "0.1"], "Did you mean --level (1 − alpha)?"),
        (
            "audit",
            ["--strategy", "quantile"],
            (
                "Omit it, or use --partition equal-mass of measure or test or groups or compare or table or power or"
                " draw or fit."
            ),
        ),
        (
            "test",
            ["--set", "strategy=quantile"],
            (
                "partition is a setting of the test 'consistency': trueodds test FILE --test consistency --partition"
                " equal-mass."
            ),
        ),
        (
            "draw",
            ["--diagram", "cwece", "--out", "x.svg"],
            "ece is an estimator: trueodds measure FILE --estimator ece --lens classwise.",
        ),
        ("audit", ["--level", "95"], "It is a fraction: --level 0.95."),
        ("measure", ["ece"], "The estimator is an option: --estimator ece."),
        ("test", ["ks"], "The test is an option: --test ks."),
        ("compare", ["brier"], "The estimator is an option: --estimator brier."),
        ("fit", ["platt", "--out", "c.json"], "The calibrator is an option: --method platt."),
    ],
)
def test_an_option_of_another_name_is_found(run: Run, good: str, command: str, words: list[str], fix: str) -> None:
    assert labelled(run(command, good, *words).stderr)["fix"] == fix


@pytest.mark.parametrize(
    ("words", "assignment"),
    [
        (
            ["measure", "--estimator", "net_benefit", "--threshold", "0.2"],
            "net_benefit: pass it as --set threshold=0.2.",
        ),
        (
            ["draw", "--diagram=reliability_curve", "--smoother=loess"],
            "reliability_curve: pass it as --set smoother=loess.",
        ),
    ],
)
def test_a_setting_given_as_an_option_is_named_as_one_of_the_method(
    run: Run, good: str, words: list[str], assignment: str
) -> None:
    done = run(words[0], good, *words[1:])
    assert labelled(done.stderr)["fix"] == f"It is a setting of {assignment}"


def test_an_unknown_kind_of_names_is_said_to_be_one(run: Run) -> None:
    error = labelled(run("list", "estimator").stderr)
    assert (error["problem"], error["fix"]) == ("Unknown kind of names.", "Did you mean estimators?")


def test_a_file_given_twice_is_refused_because_its_rows_would_count_twice(run: Run, good: str, folder: Path) -> None:
    tally = folder / "a.tally.json"
    assert run("tally", good, "--out", tally).exit_code == 0
    for words in (
        ("merge", tally, tally, "--out", folder / "b.tally.json"),
        ("audit", tally, f"{folder}/./a.tally.json"),
        ("measure", good, folder / "g*.csv"),
    ):
        error = labelled(run(*words).stderr)
        assert error["code"] == "TO603"
        assert error["problem"] == "A file is given twice, so its rows would count twice."
    assert run("compare", good, good, "--names", "a,b", "--interval", "none").exit_code == 0  # two models
