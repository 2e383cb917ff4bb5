"""Ranks and ties come from logits where they are known, also where all probabilities round to 0 or 1.

Turning the signs of the logits and swapping the labels names the same predictions by the other class. Nothing but the
rounding of probabilities near 1 distinguishes the two, so every result that depends on ranks must be the same.
"""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

import trueodds as to
from trueodds import Predictions
from trueodds.binning.equal_mass import EqualMass, FixedMass, Sweep
from trueodds.calibrators import CALIBRATORS
from trueodds.diagrams.murphy_curves import MurphyCurve
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.distinct_scores import DistinctScoreError
from trueodds.hypotests.hosmer_lemeshow import quantile_groups
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.selective_risk import selective_risk
from trueodds.lenses.view import rank_scores
from trueodds.reports.standard_measures import auc_with_se

RANKED_ESTIMATORS = [
    name
    for name in ESTIMATORS.names()
    if issubclass(ESTIMATORS.load(name), DistinctScoreError) and ESTIMATORS.load(name).by_rank
]
# Curves of ranks. The others either have a formula in log odds, or bins with fixed edges of the probability.
RANKED_CALIBRATORS = {
    "isotonic": {},
    "centered_isotonic": {},
    "enir": {},
    "venn_abers": {},
    "histogram": {"partition": "equal-mass", "bins": 10},  # 400 rows: groups of 40 from either end
}


def saturated(n=200, seed=0):
    """Logits of about 40 to 45, whose probabilities are all 1, and labels that they predict."""
    rng = np.random.default_rng(seed)
    z = np.r_[rng.normal(45, 3, n), rng.normal(40, 3, n)]
    return np.r_[np.ones(n, int), np.zeros(n, int)], z


Y, Z = saturated()
HIGH, LOW = Predictions.from_logits(Y, Z), Predictions.from_logits(1 - Y, -Z)


def positive_view(preds):
    (view,) = as_lens("positive").views(preds)
    return view


def isotonic_score(y, z):
    return IsotonicRegression(out_of_bounds="clip").fit(z, y).predict(z)


def test_the_probabilities_of_these_logits_are_nearly_all_one():
    assert (HIGH.p == 1).mean() > 0.7


@pytest.mark.slow
def test_the_auc_is_that_of_the_logits():
    expected = roc_auc_score(Y, Z)
    assert auc_with_se(positive_view(HIGH))[0] == pytest.approx(expected, abs=1e-12)
    assert auc_with_se(positive_view(LOW)) == pytest.approx(auc_with_se(positive_view(HIGH)), abs=1e-12)
    measures = {m["name"]: m["value"] for m in to.audit(HIGH, rng=0).to_dict()["standard_measures"]}
    assert measures["auc"] == pytest.approx(expected, abs=1e-12)


def test_corp_compares_with_the_isotonic_fit_to_the_logits():
    # All predictions are about 1: the score is 1/2 and UNC 1/4. S(r) is the Brier score of the isotonic fit.
    recalibrated = brier_score_loss(Y, isotonic_score(Y, Z))
    for preds in (HIGH, LOW):
        parts = to.measure(preds, "corp", interval=None).parts
        assert parts["mcb"] == pytest.approx(0.5 - recalibrated, abs=1e-12)
        assert parts["dsc"] == pytest.approx(0.25 - recalibrated, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in RANKED_ESTIMATORS if name != "sweep"])
def test_an_error_by_rank_is_the_same_for_logits_of_the_other_sign(name):
    high, low = (to.measure(preds, name, rng=0) for preds in (HIGH, LOW))
    if name.startswith(("ks", "ecce_mad")):  # sums from below: the path of the other class runs backwards
        high, low = (to.measure(preds, name, start="both", rng=0) for preds in (HIGH, LOW))
    assert high.value == pytest.approx(low.value, abs=1e-12)
    assert high.value > 0


def test_a_line_in_log_odds_keeps_the_order_of_logits_with_equal_probabilities():
    report = to.fit(HIGH, "auto", rng=0).report
    llo = next(candidate for candidate in report.candidates if candidate["method"] == "llo")
    assert llo["keeps_order"]


@pytest.mark.parametrize("name", RANKED_CALIBRATORS)
def test_a_calibrator_by_rank_is_the_same_for_logits_of_the_other_sign(name):
    settings = RANKED_CALIBRATORS[name]
    q = to.fit(HIGH, name, **settings).predict_proba(Z, logits=True)
    flipped = to.fit(LOW, name, **settings).predict_proba(-Z, logits=True)[:, ::-1]
    assert q == pytest.approx(flipped, abs=1e-12)
    assert roc_auc_score(Y, q[:, 1]) > 0.85


def test_every_calibrator_of_scores_takes_logits_or_has_fixed_edges():
    # bbq: bins are closed on the right. irm and simplex_histogram are maps of the whole vector of probabilities.
    of_probabilities = {"identity", "prior_shift", "irm", "simplex_histogram"}
    refusing = {name for name in CALIBRATORS.names() if not CALIBRATORS.load(name).takes_logs}
    assert refusing <= of_probabilities


@pytest.mark.parametrize("partition", [EqualMass(10), FixedMass(40)], ids=str)
def test_bins_of_equal_mass_are_cut_between_logits(partition):
    views = [positive_view(preds) for preds in (HIGH, LOW)]
    (n, y), (n_flipped, y_flipped) = [
        (view.binned(partition.fit(view)).n, view.binned(partition.fit(view)).y) for view in views
    ]
    assert n.tolist() == [40] * 10
    assert n.tolist() == n_flipped[::-1].tolist()
    assert y == pytest.approx(1 - y_flipped[::-1], abs=1e-12)


def test_the_sweep_finds_the_bins_of_logits_that_probabilities_resolve():
    # Bins end after ⌈n i / k⌉ rows, so that those of the other sign differ; those of smaller logits are the same.
    view, resolved = (positive_view(Predictions.from_logits(Y, z)) for z in (Z, Z - 42))
    bins, resolved_bins = (Sweep().fit(v) for v in (view, resolved))
    assert bins.size == resolved_bins.size > 1
    assert view.assign(bins).tolist() == resolved.assign(resolved_bins).tolist()
    rates = view.binned(bins).y
    error = to.measure(HIGH, "sweep", order=1, interval=None)
    assert error.value == pytest.approx(view.binned(bins).w @ (1 - rates) / len(Z), abs=1e-12)


def test_risk_groups_are_cut_between_logits():
    groups = to.test(HIGH, "hosmer_lemeshow", bins=10, rng=0).parts
    expected, _ = quantile_groups(Z, np.ones(len(Z)), np.ones(len(Z)), 10)
    assert [group["n"] for group in groups.values()] == np.bincount(expected).tolist()


def test_every_bin_of_the_test_of_bins_has_a_name_of_its_own():
    parts = to.test(HIGH, "bins", partition="equal-mass", bins=10).parts
    assert len(parts) == 10
    assert [part["n"] for part in parts.values()] == [40] * 10
    assert all(name.startswith("log odds ") for name in parts)


def test_confidences_that_round_to_one_are_ranked_by_the_logits_of_all_classes():
    # Three classes: log p₀ − log(1 − p₀) = z₀ − log(e^z₁ + e^z₂), which is exact where p₀ is 1.
    rng = np.random.default_rng(3)
    z = np.c_[rng.normal(50, 4, 300), np.zeros(300), rng.normal(0, 1, 300)]
    log_odds = z[:, 0] - np.logaddexp(z[:, 1], z[:, 2])
    y = np.where(rng.random(300) < expit((log_odds - 50) / 3), 0, 1)
    preds = Predictions.from_logits(y, z)
    for lens in ("confidence", "class:0"):
        (view,) = as_lens(lens).views(preds)
        assert rank_scores(view) == pytest.approx(log_odds, rel=1e-14)
        assert auc_with_se(view)[0] == pytest.approx(roc_auc_score(y == 0, log_odds), abs=1e-12)
    aurc = selective_risk(preds, resamples=0).aurc
    order = np.argsort(-log_odds)
    risk = np.cumsum(y[order] != 0) / np.arange(1, 301)
    assert aurc == pytest.approx(risk.mean(), abs=1e-12)


def test_the_second_class_is_ranked_by_logits_where_its_probability_underflows():
    preds = Predictions.from_logits([2, 0], [[0.0, -900.0, -800.0], [0.0, -800.0, -900.0]])
    (view,) = as_lens("rank:2").views(preds)
    assert view.y.tolist() == [1, 0]


def test_ordinary_logits_give_the_results_of_their_probabilities():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, 500)
    y = (rng.random(500) < expit(z)).astype(int)
    for name in ("corp", "ks", "ecce_r", "ace"):
        lens = {"lens": "positive"}
        one, other = (
            to.measure(preds, name, rng=0, **lens)
            for preds in (Predictions.from_logits(y, z), Predictions(y, expit(z)))
        )
        assert one.value == pytest.approx(other.value, rel=1e-12)
        assert one.interval.low == pytest.approx(other.interval.low, rel=1e-9)


@pytest.mark.parametrize("name", ["corp", "cumulative", "reliability"])
def test_a_diagram_of_saturated_logits_is_drawn_from_their_ranks(name):
    settings = {"partition": "equal-mass", "bins": 10} if name == "reliability" else {}
    high, low = (to.draw(preds, name, lens="positive", rng=0, **settings).frame() for preds in (HIGH, LOW))
    part = {"corp": "block", "cumulative": "curve", "reliability": "bin"}[name]
    rows = [frame[frame["part"] == part] if "part" in frame else frame for frame in (high, low)]
    assert len(rows[0]) == len(rows[1]) > 4


def test_murphy_curves_compare_with_the_isotonic_fit_to_the_logits():
    curve = MurphyCurve(positive_view(HIGH))
    order = np.argsort(Z)
    assert curve.isotonic_rates == pytest.approx(isotonic_score(Y, Z)[order], abs=1e-12)
