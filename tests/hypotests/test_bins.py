"""The bin-by-bin test: exact distribution of each bin, adjustment over bins, and cells of vectors."""

import math

import numpy as np
import pytest
from scipy import stats

import trueodds as to
from tests import reference
from tests.rates import rate_is_at_level
from trueodds.binning.equal_mass import Sweep
from trueodds.binning.simplex_grid import Distinct
from trueodds.binning.uniform import Uniform
from trueodds.diagrams.bins import consistency_bars
from trueodds.hypotests.bins import BinByBin
from trueodds.lenses.view import View


def codes(verdict):
    return [note.code for note in verdict.notes]


def calibrated(rng, n, k):
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, k - 1), P)


def test_by_hand():
    # (0, .5]: two heads of two at .5 have p = 2/4; (.5, 1]: said .9 and .8, none came: P = .02, twice that
    result = BinByBin(partition=Uniform(2)).evaluate(View([0.5, 0.5, 0.9, 0.8], [1, 1, 0, 0]))
    low, high = result.parts["[0, 0.5]"], result.parts["(0.5, 1]"]
    assert (low["n"], low["predicted"], low["observed"], low["gap"], low["pvalue"]) == (2, 0.5, 1.0, 0.5, 0.5)
    assert low["statistic"] == pytest.approx(1 / math.sqrt(0.5))
    assert high["pvalue"] == pytest.approx(0.04)
    assert (low["holm"], high["holm"]) == (0.5, pytest.approx(0.08))
    assert (result.pvalue, result.statistic) == (pytest.approx(0.08), pytest.approx(-1.7 / math.sqrt(0.09 + 0.16)))
    assert result.effect == pytest.approx(-0.85)


def test_a_bin_is_off_where_its_consistency_bar_says_so():
    # golden c.consistency_bars.ew10: the rate of a bin lies outside its 90 % bar if, and only if, its two-sided p is
    # below .1, but for the half-steps of a discrete law: p ≤ .1 outside, and ≥ .1 strictly inside
    known = reference.estimators()["c.consistency_bars.ew10"]["value"]
    rows = reference.frame("estimators/c_binary500.csv")
    view = View(rows["p"], rows["y"])
    result = BinByBin(partition=Uniform(10)).evaluate(view)
    parts = list(result.parts.values())
    assert result.settings_used["smallest_bin"] == min(part["n"] for part in parts)
    bars = consistency_bars(view, Uniform(10).fit(view).index(view.partition_values), 10, 0.9)
    for b, part in enumerate(parts):
        low, high = known[str(b)]["poisson_binomial_5_95"]
        assert (part["n"], part["observed"]) == (known[str(b)]["n"], pytest.approx(known[str(b)]["obs"]))
        assert part["predicted"] == pytest.approx(known[str(b)]["mean_pred"], rel=1e-12)
        assert (bars.low[b], bars.high[b]) == (low, high)
        if part["observed"] < low or part["observed"] > high:
            assert part["pvalue"] <= 0.1
        elif low < part["observed"] < high:
            assert part["pvalue"] >= 0.1


def test_which_bins_are_off_beyond_chance():
    # the model is 30 points too sure above .8 and right below
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    r = np.where(p > 0.8, p - 0.3, p)
    verdict = to.test(to.Predictions((rng.random(2000) < r).astype(int), p), "bins", bins=10)
    rejected = [name for name, part in verdict.parts.items() if part["joint"] <= 0.05]
    assert rejected == ["(0.8, 0.9]", "(0.9, 1]"]
    assert verdict.pvalue == min(part["joint"] for part in verdict.parts.values()) == 0.001
    assert -0.4 < verdict.effect < -0.2
    assert all(
        part["joint"] <= part["holm"] + 0.06 for part in verdict.parts.values()
    )  # Holm's is coarser, but for draws
    asymptotic = to.test(to.Predictions((rng.random(2000) < r).astype(int), p), "bins", bins=10, null="asymptotic")
    assert "joint" not in asymptotic.parts["(0.9, 1]"]
    assert asymptotic.pvalue == min(part["holm"] for part in asymptotic.parts.values()) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("k", "lens"), [(2, "positive"), (3, "canonical"), (3, ["confidence", "classwise"])])
def test_size_under_the_null(k, lens):
    rng = np.random.default_rng(1)
    verdicts = (to.test(calibrated(rng, 60, k), "bins", lens=lens, resamples=99, rng=seed) for seed in range(200))
    assert rate_is_at_level((verdict.pvalue <= 0.05 for verdict in verdicts), 0.05, excluded=0.15)


@pytest.mark.slow
def test_no_bin_of_a_calibrated_model_is_named_more_often_than_the_level():
    # family-wise, by either part: at most 22 of 200 data sets with 99.9 %
    rng, joint, holm = np.random.default_rng(2), 0, 0
    for seed in range(200):
        parts = to.test(calibrated(rng, 100, 2), "bins", bins=8, resamples=99, rng=seed).parts.values()
        joint += min(part["joint"] for part in parts) <= 0.05
        holm += min(part["holm"] for part in parts) <= 0.05
    assert joint <= 22
    assert holm <= 22


def test_cells_of_vectors_name_the_class_farthest_off():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), 600)
    true = P.copy()
    confident = P[:, 2] > 0.5
    true[confident] = 0.5 * P[confident] + 0.5 * np.array([0.8, 0.1, 0.1])
    y = (rng.random(600)[:, None] > np.cumsum(true, axis=1)).sum(axis=1).clip(0, 2)
    verdict = to.test(to.Predictions(y, P), "bins", lens="canonical", min_size=50)
    assert verdict.pvalue == 0.001
    strongest = min(verdict.parts.values(), key=lambda part: part["pvalue"])
    assert strongest["class"] in (0, 2)
    assert verdict.effect == strongest["gap"] == strongest["observed"] - strongest["predicted"]
    assert verdict.statistic == strongest["statistic"] > stats.chi2.isf(0.001, 2)
    assert verdict.settings["partition"] == "median-variance min 50"
    assert "χ²" in next(
        note.text
        for note in to.test(to.Predictions(y, P), "bins", lens="canonical", null="asymptotic").notes
        if note.code == "TN212"
    )


def test_of_many_bins_the_strongest_are_reported():
    rng = np.random.default_rng(4)
    p = rng.random(150)
    verdict = to.test(to.Predictions((rng.random(150) < p).astype(int), p), "bins", partition="distinct", resamples=19)
    assert len(verdict.parts) == 100
    assert "TN225" in codes(verdict)
    assert verdict.settings["occupied_bins"] == 150
    everyone = BinByBin(partition=Distinct()).evaluate(View(p, rng.random(150) < p))
    assert list(everyone.parts) == sorted(everyone.parts, key=lambda name: int(name.split()[1]))


def test_an_impossible_outcome_makes_p_0_by_law_and_the_floor_by_redraws():
    preds = to.Predictions([1, 0, 1, 0], [0.0, 0.0, 0.7, 0.6])
    asymptotic = to.test(preds, "bins", null="asymptotic")
    assert (asymptotic.pvalue, asymptotic.statistic) == (0, math.inf)
    assert "TN223" in codes(asymptotic)
    assert to.test(preds, "bins", resamples=99).pvalue == 0.01
    assert "TN223" not in codes(to.test(to.Predictions([0, 0, 1, 0], [0.0, 0.0, 0.7, 0.6]), "bins"))


def test_few_weighted_rows_are_doubted():
    rng = np.random.default_rng(5)
    p = rng.random(60)
    preds = to.Predictions((rng.random(60) < p).astype(int), p, weight=rng.gamma(1, 1, 60))
    assert "TN212" in codes(to.test(preds, "bins", null="asymptotic"))
    assert "TN212" not in codes(to.test(preds, "bins", resamples=19))
    plain = to.Predictions(preds.y, p)
    assert "TN212" not in codes(to.test(plain, "bins", null="asymptotic"))


def test_what_is_refused():
    with pytest.raises(to.InputError, match="TO203"):
        BinByBin(partition=Sweep())
    with pytest.raises(to.InputError, match="TO203"):
        BinByBin(partition="uniform")
    rng = np.random.default_rng(6)
    wide = to.Predictions(rng.integers(0, 400, 200), rng.dirichlet(np.ones(400), 200))
    with pytest.raises(to.InputError, match="min_size"):
        to.test(wide, "bins", lens="canonical", partition="distinct")


def test_edges_are_named_as_they_are_closed():
    view = View([0.0, 0.25, 0.9], [0, 1, 1])
    assert list(BinByBin(partition=Uniform(4)).evaluate(view).parts) == ["[0, 0.25]", "(0.75, 1]"]
    assert list(BinByBin(partition=Uniform(4, "left")).evaluate(view).parts) == [
        "[0, 0.25)",
        "[0.25, 0.5)",
        "[0.75, 1]",
    ]


@pytest.mark.slow
def test_clusters_flip_whole_residuals():
    # 80 clusters of 5 equal rows: label redraws would reject most sets; flips are approximate, and at 8 % they reject
    # at most 10 of 40 sets with 99.9 %
    rng, naive, clustered = np.random.default_rng(7), 0, 0
    rows = np.repeat(np.arange(80), 5)
    for seed in range(40):
        p = rng.random(80)
        y = (rng.random(80) < p).astype(int)
        naive += to.test(to.Predictions(y[rows], p[rows]), "bins", resamples=39, rng=seed).pvalue <= 0.05
        preds = to.Predictions(y[rows], p[rows], cluster=rows)
        clustered += to.test(preds, "bins", resamples=39, rng=seed).pvalue <= 0.05
    assert naive > 25
    assert clustered <= 10


def test_a_tally_gives_the_same_counts_and_nearly_the_same_p():
    rng = np.random.default_rng(8)
    p = rng.random(4000)
    preds = to.Predictions((rng.random(4000) < p**1.15).astype(int), p)
    rows, cells = to.test(preds, "bins"), to.test(to.tally(preds), "bins")
    for name, part in rows.parts.items():
        for key in ("n", "predicted", "observed", "statistic"):
            assert cells.parts[name][key] == pytest.approx(part[key], rel=1e-9)
        assert cells.parts[name]["pvalue"] == pytest.approx(part["pvalue"], rel=1e-4)
    assert abs(rows.pvalue - cells.pvalue) < 0.06
    with pytest.raises(to.InputError, match="TO406"):
        to.test(to.tally(preds), "bins", closed="left")
