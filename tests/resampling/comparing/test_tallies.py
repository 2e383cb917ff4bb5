"""Comparison of two models from tallies: results from cells, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import stdtr
from scipy.stats import ttest_ind

import trueodds as to
from tests.resampling.comparing.test_compare import codes, refused
from trueodds.cli import main


def pair(n: int = 2000, seed: int = 0) -> tuple[to.Predictions, to.Predictions]:
    """A calibrated model and one that is too sure, on the same rows of three classes."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)
    return to.Predictions(y, P), to.Predictions(y, P**2 / (P**2).sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ece", "smece", "ks", "corp", "mce"])
def test_errors_of_tallies_differ_as_those_of_different_rows_do(name: str) -> None:
    a, b = pair()
    rows = to.compare(a, b, name, paired=False, rng=1)
    cells = to.compare(to.tally(a), to.tally(b), name)
    assert cells.difference == pytest.approx(rows.difference, rel=0.01, abs=2e-4)
    width = rows.interval.high - rows.interval.low
    # Both ends are quantiles of 2,000 draws each: they agree to a tenth of the width.
    assert [cells.interval.low, cells.interval.high] == pytest.approx(
        [rows.interval.low, rows.interval.high], abs=0.1 * width
    )
    assert (cells.paired, cells.n) == (False, 4000)
    assert "TN227" in codes(cells)


@pytest.mark.parametrize("name", ["brier", "log_loss"])
def test_scores_of_tallies_differ_by_the_standard_errors_of_the_rows(name: str) -> None:
    a, b = pair()
    rows = to.compare(a, b, name, paired=False)
    cells = to.compare(to.tally(a), to.tally(b), name)
    assert cells.difference == pytest.approx(rows.difference, rel=1e-12)
    assert cells.settings["standard_error"] == pytest.approx(rows.settings["standard_error"], rel=1e-9)
    # Welch's degrees of freedom for 2,000 rows of each: some 3,900, where t is 1.9606. The p-value of rows is also at
    # least that of their resamples.
    z = cells.difference / cells.settings["standard_error"]
    assert cells.pvalue == pytest.approx(2 * stdtr(3900, -abs(z)), rel=0.01)
    assert rows.pvalue >= cells.pvalue * (1 - 1e-6)
    t = 1.9606 * cells.settings["standard_error"]
    assert [cells.interval.low, cells.interval.high] == pytest.approx(
        [cells.difference - t, cells.difference + t], rel=1e-4
    )
    assert cells.interval.method == "welch"


def small_tally(n: int, rng: np.random.Generator) -> to.Tally:
    p = rng.beta(2, 2, n)
    return to.tally(to.Predictions((rng.random(n) < p).astype(int), p))


def test_a_difference_of_few_rows_by_hand() -> None:
    # Brier scores (.2², .4², .6²) = (.04, .16, .36) and (.09, .25): means .56/3 and .17, variances .026133 and .0128.
    a = to.tally(to.Predictions([1, 1, 0], [0.8, 0.6, 0.6]))
    b = to.tally(to.Predictions([1, 0], [0.7, 0.5]))
    comparison = to.compare(a, b, "brier")
    expected = ttest_ind([0.04, 0.16, 0.36], [0.09, 0.25], equal_var=False)
    assert comparison.pvalue == pytest.approx(expected.pvalue, rel=1e-9)
    assert comparison.settings["standard_error"] == pytest.approx(np.sqrt(0.02613333 / 3 + 0.0128 / 2), rel=1e-6)
    interval = expected.confidence_interval(0.95)
    assert [comparison.interval.low, comparison.interval.high] == pytest.approx([interval.low, interval.high], rel=1e-9)


@pytest.mark.slow
def test_the_interval_of_scores_excludes_0_exactly_where_p_is_below_alpha() -> None:
    rng = np.random.default_rng(0)
    decided = []
    for _ in range(200):
        a, b = small_tally(4, rng), small_tally(9, rng)
        comparison = to.compare(a, b, "brier", level=0.7)
        if comparison.interval is None:  # all outcomes of a tally are equal
            continue
        decided.append(comparison.pvalue < 0.3)
        assert decided[-1] == (not comparison.interval.low <= 0 <= comparison.interval.high)
    assert 0 < sum(decided) < len(decided)
    assert len(decided) > 100


@pytest.mark.slow
def test_scores_of_few_rows_differ_by_chance_no_more_often_than_alpha() -> None:
    # Two calibrated models of 4 rows each: rejections at 5 % of 1,000 are Binomial(1000, .05), 99.9 % below 72.
    # The t-test of so few skewed scores rejects less often; normal quantiles and variances divided by n gave 131.
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(1000):
        interval = to.compare(small_tally(4, rng), small_tally(4, rng), "brier").interval
        rejected += interval is not None and not interval.low <= 0 <= interval.high
    assert rejected <= 72


def test_each_model_s_own_answer_is_the_one_that_measure_gives() -> None:
    a, b = map(to.tally, pair())
    for name in ("ece", "brier"):
        estimates = to.compare(a, b, name).models
        for model, tally in zip(estimates.values(), (a, b), strict=True):
            own = to.measure(tally, name)
            assert model.value == own.value
            assert model.interval.high == pytest.approx(own.interval.high, rel=0.05)


@pytest.mark.slow
def test_the_interval_of_two_calibrated_tallies_covers_their_equal_errors() -> None:
    # Both true errors are 0. Of 60 intervals of 95 % at most 9 miss with 99.9 %: Binomial(60, .05).
    missed = 0
    for seed in range(60):
        a, _ = pair(500, seed)
        b, _ = pair(500, 1000 + seed)
        comparison = to.compare(to.tally(a), to.tally(b), "ece", resamples=200)
        missed += not comparison.interval.low <= 0 <= comparison.interval.high
    assert missed <= 9


def test_an_aggregate_over_classes_has_a_difference_and_says_why_it_has_no_interval() -> None:
    comparison = to.compare(*map(to.tally, pair()), "ece", lens="classwise")
    assert (comparison.interval, comparison.pvalue) == (None, None)
    assert "TN201" in codes(comparison)
    assert comparison.difference == pytest.approx(to.compare(*pair(), "ece", lens="classwise").difference, rel=1e-9)


def test_tallies_are_ranked() -> None:
    a, b = map(to.tally, pair(8000))
    ranking = to.compare({"raw": a, "sure": b, "again": a}, "brier")
    assert set(ranking.order[:2]) == {"raw", "again"}
    assert ("raw", "again") in ranking.unsettled or ("again", "raw") in ranking.unsettled
    assert ranking.settings["rows"] == "unpaired"


def test_rows_beside_a_tally_are_counted_too() -> None:
    a, b = pair()
    mixed, both = to.compare(a, to.tally(b), "brier"), to.compare(to.tally(a), to.tally(b), "brier")
    assert mixed.to_dict() == both.to_dict()


def test_what_needs_the_rows_is_refused_with_what_works() -> None:
    a, b = map(to.tally, pair(60))
    assert "compare the predictions" in refused("TO403", a, b, "brier", paired=True).fix
    assert "compare the predictions" in refused("TO403", a, b, "brier", null="swap").fix
    refused("TO403", a, b, "skce")
    refused("TO205", a, b, "ece", interval="bca")
    refused("TO405", a, b, "ece", lens="canonical")
    assert "TN227" not in codes(to.compare(a, b, "brier", paired=False))  # said to be different rows


def test_files_of_tallies_are_compared(tmp_path: Path) -> None:
    a, b = pair()
    for name, preds in (("old", a), ("new", b)):
        to.tally(preds).save(f"{tmp_path}/{name}.tally.json")
    files = [f"{tmp_path}/{name}.tally.json" for name in ("new", "old")]
    done = CliRunner().invoke(main, ["compare", *files, "--estimator", "brier"])
    assert done.exit_code == 0
    assert done.stdout.startswith("brier new − old ")
    assert "cannot be paired" in done.stdout


def test_infinite_losses_have_no_interval() -> None:
    a = to.tally(to.Predictions([1, 1, 0] * 20, [0.0, 0.5, 0.5] * 20))
    b = to.tally(to.Predictions([1, 1, 0] * 20, [0.5] * 60))
    comparison = to.compare(a, b, "log_loss")
    assert (comparison.difference, comparison.interval) == (np.inf, None)
    assert "TN201" in codes(comparison)
