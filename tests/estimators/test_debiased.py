"""Is what debiasing takes off exactly what chance adds? By hand, by enumeration, and against the published numbers."""

from __future__ import annotations

import itertools
import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS, debiased
from trueodds.estimators.base import Estimator
from trueodds.estimators.binned import BinnedError, RootMeanSquareError
from trueodds.estimators.debiased import DebiasedL1, DebiasedL2
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

ONE = Uniform(1)
FORMS = ("t_mn", "kumar", "dpe")


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


@cache
def view_of(name: str) -> View:
    """A reference input through its lens: confidence of four classes (b), two classes (c), with ties (c2)."""
    file = {"b": "b_multi1000", "c": "c_binary500", "c2": "c2_binary500_ties"}[name]
    table = reference.frame(f"estimators/{file}.csv")
    preds = Predictions(table["y"], table["p"] if "p" in table else reference.columns(table))
    return as_lens("confidence" if name == "b" else "positive").views(preds)[0]


# By hand


def test_pairs_of_rows_by_hand() -> None:
    # u = .4, −.6, −.6: (−.8)² = .64 less .16 + .36 + .36 = .88 gives −.24, over 3 · 2 pairs −.04, over 9 −.24/9.
    view = View([0.6] * 3, [1, 0, 0])
    assert DebiasedL2(ONE).signed_value(view) == pytest.approx(-0.04, rel=1e-12)
    assert DebiasedL2(ONE).value(view) == 0
    assert DebiasedL2(ONE, "dpe").signed_value(view) == pytest.approx(-0.24 / 9, rel=1e-12)
    # Kumar: (.6 − 1/3)² − (1/3)(2/3)/2 = .0711 − .1111: with equal predictions the same as pairs
    assert DebiasedL2(ONE, "kumar").signed_value(view) == pytest.approx(-0.04, rel=1e-12)
    assert DebiasedL2(ONE)(view).parts == pytest.approx({"squared": -0.04, "signed_root": -0.2, "plug_in": 0.8 / 3})


def test_weights_are_importance_by_hand() -> None:
    # wu = 2 · .5, 1 · −.5: (.5)² − (1 + .25) = −1, over 9 − 5.
    view = View([0.5, 0.5], [1, 0], [2, 1])
    assert DebiasedL2(ONE).signed_value(view) == pytest.approx(-0.25, rel=1e-12)
    assert DebiasedL2(ONE, "dpe").signed_value(view) == pytest.approx(-1 / 9, rel=1e-12)
    # Kumar with n = 9/5: (2/3 − 1/2)² − (2/9)/(4/5)
    assert DebiasedL2(ONE, "kumar").signed_value(view) == pytest.approx(1 / 36 - (2 / 9) / 0.8, rel=1e-12)


def test_bins_of_one_row_add_nothing_but_count() -> None:
    # .9 alone tells nothing; of the other two, u = .6 and −.4: .04 − .52 over 2 pairs, with 2/3 of the weight.
    view = View([0.4, 0.4, 0.9], [1, 0, 0])
    for form, pairs in (("t_mn", 2), ("dpe", 4)):
        answer = DebiasedL2(Uniform(2), form)(view)
        assert answer.parts["squared"] == pytest.approx(2 / 3 * (0.04 - 0.52) / pairs, rel=1e-12)
        assert [note.code for note in answer.notes] == ["TN112", "TN110"]


def test_the_folded_normal_by_hand() -> None:
    # gap .1, s² = .6 · .4/5 = .048: E|N(.1, .048)| = s sqrt(2/π) e^(−.01/.096) + .1 (1 − 2Φ(−.1/s)), and
    # 1 − 2Φ(−z) = erf(z/√2)
    view = View([0.5] * 5, [1, 1, 1, 0, 0])
    s = 0.048**0.5
    folded = s * (2 / math.pi) ** 0.5 * math.exp(-0.01 / 0.096) + 0.1 * math.erf(0.1 / s / 2**0.5)
    answer = DebiasedL1(ONE)(view)
    assert answer.value == pytest.approx(0.2 - folded, rel=1e-12)
    assert answer.parts == pytest.approx({"plug_in": 0.1, "bias": folded - 0.1})


def test_a_bin_of_one_row_keeps_its_distance_in_l1() -> None:
    # Kumar's code stops with an error where a bin holds fewer than two rows.
    assert DebiasedL1(ONE).value(View([0.3], [1])) == pytest.approx(0.7, rel=1e-14)
    assert DebiasedL1(ONE).value(View([0.3], [0.6])) == pytest.approx(0.3, rel=1e-14)  # a share of votes


# Reference numbers

UNIQUE = FixedEdges((0, *((np.arange(20) + 0.5) / 20).tolist(), 1))


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "estimator"),
    [
        ("b.confidence_debiased_l2.em15_mid", "b", DebiasedL2(EqualMass(15), "kumar")),
        ("b.confidence_debiased_l2.ew15", "b", DebiasedL2(Uniform(15), "kumar")),
        ("c2.debiased_l2.unique_values", "c2", DebiasedL2(UNIQUE, "kumar")),
        ("b.confidence_debiased_l1.em15_mid", "b", DebiasedL1(EqualMass(15))),
        ("b.confidence_debiased_l1.ew15", "b", DebiasedL1(Uniform(15))),
    ],
)
def test_a_reference_number(key: str, name: str, estimator: Estimator) -> None:
    assert estimator.value(view_of(name)) == pytest.approx(golden()[key]["value"], rel=1e-10)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "estimator"),
    [
        ("b.confidence_debiased_l2sq.em15_mid", "b", DebiasedL2(EqualMass(15), "kumar")),
        ("b.confidence_debiased_l2sq.ew15", "b", DebiasedL2(Uniform(15), "kumar")),
        *((f"c.sun_T_mn.m{m}", "c", DebiasedL2(Uniform(m))) for m in (10, 15, 50)),
        *((f"c.tcal_dpe.m{m}", "c", DebiasedL2(Uniform(m), "dpe")) for m in (2, 4, 8, 16, 32, 64)),
    ],
)
def test_a_reference_square(key: str, name: str, estimator: DebiasedL2) -> None:
    answer = estimator(view_of(name))
    assert answer.parts["squared"] == pytest.approx(golden()[key]["value"], rel=1e-10)
    assert answer.value == pytest.approx(golden()[key]["value"] ** 0.5, rel=1e-10)


@pytest.mark.reference
def test_the_closed_form_is_what_normal_draws_tend_to() -> None:
    # Kumar's code draws; 2e5 draws of each of 15 bins: 4.5 standard errors of the weighted sum of |N|, whose sd is
    # at most that of N itself.
    view = view_of("b")
    binned = view.pool(Uniform(15).fit(view).index(view.partition_values), 15)
    share, gap = binned.w / binned.w.sum(), binned.p - binned.y
    s = np.sqrt(binned.y * (1 - binned.y) / binned.w)
    drawn = np.abs(gap + s * np.random.default_rng(0).standard_normal((200_000, len(gap))))
    formula = 2 * share @ np.abs(gap) - (share * drawn.mean(axis=0)).sum()
    error = ((share * s) ** 2).sum() ** 0.5 / 200_000**0.5
    assert DebiasedL1(Uniform(15)).value(view) == pytest.approx(formula, abs=4.5 * error)


# What is unbiased


def expectation(estimator: DebiasedL2, p: Array, truth: Array, w: Array | None = None) -> float:
    """The exact mean of the square over all outcomes of rows that come with probability `truth`."""
    total = 0.0
    for y in itertools.product((0.0, 1.0), repeat=len(p)):
        chance = float(np.where(y, truth, 1 - truth).prod())
        total += chance * estimator.signed_value(View(p, np.array(y), w))
    return total


@pytest.mark.slow
def test_the_square_of_pairs_is_unbiased_and_the_other_forms_are_biased_as_documented() -> None:
    # In bin (0, .5] the truth is .1 above what is said, in (.5, 1] .2 below; 4 of 10 rows are in the first. Pairs:
    # E = .4 · .01 + .6 · .04 = .028 exactly, though predictions vary. DPE shrinks by 3/4 and 5/6. Kumar takes off
    # E ȳ(1 − ȳ)/(n − 1), which is Var ȳ + the variance of the truths over n − 1 (derived: Σ(y − ȳ)² counts both).
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95])
    low = p <= 0.5
    truth = p + np.where(low, 0.1, -0.2)
    assert expectation(DebiasedL2(Uniform(2)), p, truth) == pytest.approx(0.028, rel=1e-10)
    shrunk = 0.4 * 0.01 * 3 / 4 + 0.6 * 0.04 * 5 / 6
    assert expectation(DebiasedL2(Uniform(2), "dpe"), p, truth) == pytest.approx(shrunk, rel=1e-10)
    excess = sum(len(t) / 10 * t.var() / (len(t) - 1) for t in (truth[low], truth[~low]))
    assert expectation(DebiasedL2(Uniform(2), "kumar"), p, truth) == pytest.approx(0.028 - excess, rel=1e-10)


def test_the_square_is_unbiased_with_weights() -> None:
    rng = np.random.default_rng(1)
    p, w = np.array([0.2, 0.3, 0.35, 0.4, 0.6, 0.7, 0.8]), rng.random(7) + 0.1
    assert expectation(DebiasedL2(ONE), p, p + 0.1, w) == pytest.approx(0.01, rel=1e-10)


def test_a_calibrated_model_is_zero_on_average_before_the_root() -> None:
    p = np.linspace(0.05, 0.95, 9)
    for form in ("t_mn", "dpe"):
        assert expectation(DebiasedL2(Uniform(3), form), p, p) == pytest.approx(0, abs=1e-14)


def test_of_a_calibrated_ece_about_three_fifths_remain_in_l1() -> None:
    # With Δ ~ N(0, s²): 2 E|Δ| − E|N(0, 2s²)| = (2 − √2) E|Δ|. One bin of 400 rows at .5, the exact binomial law;
    # corrections of the normal limit are of order 1/n.
    n = 400
    log = np.cumsum(np.concatenate(([0.0], np.log(np.arange(n, 0, -1) / np.arange(1, n + 1)))))
    pmf = np.exp(log - n * np.log(2))
    one = DebiasedL1(ONE).cell_statistic(View(np.full(n, 0.5), np.arange(n) % 2))
    w, counts = np.array([[float(n)]]), np.arange(n + 1.0)[:, None]
    values = one.statistic(w, w / 2, counts)
    plug_in = np.abs(counts[:, 0] / n - 0.5)
    assert pmf.sum() == pytest.approx(1, rel=1e-12)
    assert (pmf @ values) / (pmf @ plug_in) == pytest.approx(2 - 2**0.5, abs=1 / n)


# Draws


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("partition", [Uniform(6), EqualMass("auto")], ids=str)
def test_draws_see_the_same_statistic_as_the_value(form: str, partition: Any) -> None:
    rng = np.random.default_rng(2)
    for w in (None, rng.integers(0, 3, 70).astype(float), rng.random(70)):
        view = View(rng.random(70), rng.integers(0, 2, 70), w)
        for estimator in (DebiasedL2(partition, form), DebiasedL1(partition)):
            one = estimator.cell_statistic(view)
            assert one.value() == pytest.approx(estimator.value(view), rel=1e-10, abs=1e-14)
            sums = [np.bincount(one.index, x, one.size)[None] for x in (view.w, view.w * view.p)]
            labels = rng.integers(0, 2, (20, 70)).astype(float)
            signs = rng.choice([-1.0, 1.0], (20, 70))
            flipped = view.p + signs * (view.y - view.p)
            for other in (labels, flipped):
                drawn = np.stack([np.bincount(one.index, view.w * y, one.size) for y in other])
                truth = [estimator.value(view.with_y(y)) for y in other]
                assert one.statistic(*sums, drawn) == pytest.approx(truth, rel=1e-9, abs=1e-12)
            assert one.centered_norms(sums[0][0], sums[1][0], drawn[0], (*sums, drawn)) is None


def test_resampled_rows_are_rows_of_their_own() -> None:
    rng = np.random.default_rng(3)
    view = View(rng.random(50), rng.integers(0, 2, 50), rng.random(50))
    estimator = DebiasedL2(Uniform(4))
    one = estimator.cell_statistic(view)
    rows = rng.integers(0, 50, (20, 50))
    sums = [
        np.stack([np.bincount(one.index[r], x[r], one.size) for r in rows])
        for x in (view.w, view.w * view.p, view.w * view.y)
    ]
    truth = [estimator.value(view.take(r)) for r in rows]
    assert one.statistic(*sums) == pytest.approx(truth, rel=1e-9, abs=1e-12)


# The façade


def calibrated(n: int, seed: int, power: float = 1.0) -> Predictions:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return Predictions(rng.random(n) < p**power, p)


def test_the_interval_is_that_of_the_plug_in_on_the_same_bins() -> None:
    data = calibrated(2000, 4, power=1.5)
    estimate = to.measure(data, "debiased_l2", resamples=200)
    plug_in = to.measure(data, "rmsce", partition="equal-mass", bins="auto", resamples=200)
    assert estimate.interval == plug_in.interval
    assert estimate.interval is not None
    assert estimate.interval.method == "sun"
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert estimate.value == pytest.approx(plug_in.debiased, rel=1e-12)
    assert estimate.debiased is None  # it is debiased already
    assert estimate.settings["bins"] == 21  # ⌈2000^.4⌉
    l1 = to.measure(data, "debiased_l1", resamples=200)
    ece = to.measure(data, "ece", partition="equal-mass", bins="auto", resamples=200)
    assert l1.interval == ece.interval is not None
    assert l1.debiased is None


def test_the_noise_floor_of_the_root_is_below_that_of_the_plug_in() -> None:
    data = calibrated(1000, 5)
    estimate = to.measure(data, "debiased_l2", resamples=50)
    plug_in = to.measure(data, "rmsce", partition="equal-mass", bins="auto", resamples=50)
    assert estimate.noise_floor is not None
    assert plug_in.noise_floor is not None
    # The root of max(0, θ) with θ about N(0, σ²): half of the draws are 0.
    assert 0 < estimate.noise_floor < 0.5 * plug_in.noise_floor


def test_redraws_are_those_of_the_rows_one_by_one() -> None:
    class RowByRow(DebiasedL2):
        def cell_statistic(self, view: View) -> None:  # type: ignore[override]
            return None

    data = calibrated(150, 6)
    fast, slow = (
        to.test(data, "consistency", statistic=statistic, resamples=99) for statistic in (DebiasedL2(), RowByRow())
    )
    assert fast.pvalue == slow.pvalue


@pytest.mark.parametrize("name", ["debiased_l2", "debiased_l1"])
def test_a_tally_gives_the_number_of_its_rows_on_nested_bins(name: str) -> None:
    data = calibrated(3000, 7, power=1.3)
    settings: dict[str, Any] = {"partition": "uniform", "bins": 15, "resamples": 200}
    exact, tallied = (to.measure(x, name, **settings) for x in (data, to.tally(data)))
    assert tallied.value == pytest.approx(exact.value, rel=1e-9)
    assert tallied.interval is not None
    assert exact.interval is not None
    assert exact.noise_floor is not None
    if name == "debiased_l2":  # Sun's interval, in which there is no chance
        assert tallied.interval.low == pytest.approx(exact.interval.low, rel=1e-9)
        assert tallied.interval.high == pytest.approx(exact.interval.high, rel=1e-9)
    # Both floors are means of 999 draws, whose sd is below twice the floor (1.2 times for the root of the positive
    # part of a normal number): 4.5 standard errors of their difference.
    error = 2**0.5 * 2 * exact.noise_floor / 999**0.5
    assert tallied.noise_floor == pytest.approx(exact.noise_floor, abs=4.5 * error)


def test_votes_and_clusters_are_answered() -> None:
    rng = np.random.default_rng(8)
    P = rng.dirichlet([1, 1], 200)
    voted = Predictions(rng.multinomial(5, P), P)
    clustered = Predictions(rng.integers(0, 2, 200), rng.random(200), cluster=np.arange(200) // 4)
    for data in (voted, clustered):
        for name in ("debiased_l2", "debiased_l1"):
            estimate = to.measure(data, name, lens="positive", resamples=50)
            assert estimate.noise_floor is not None
            assert np.isfinite([estimate.value, estimate.noise_floor]).all()


def test_a_negative_square_is_noted_once_for_many_classes() -> None:
    rng = np.random.default_rng(9)
    P = rng.dirichlet([1] * 6, 60)
    data = Predictions([rng.choice(6, p=row) for row in P], P)
    estimate = to.measure(data, "debiased_l2", lens="classwise", resamples=50)
    below = sum(DebiasedL2().signed_value(view) < 0 for view in as_lens("classwise").views(data))
    assert below > 0
    (note,) = [note for note in estimate.notes if note.code == "TN110"]
    assert f"{below} of 6 classes" in note.text


def test_the_registry_makes_estimators_from_words() -> None:
    assert ESTIMATORS.make("debiased_l2", {}) == DebiasedL2(EqualMass("auto"))
    assert ESTIMATORS.make("debiased_l2", {"bins": 10, "form": "kumar"}) == DebiasedL2(EqualMass(10), "kumar")
    assert ESTIMATORS.make("debiased_l1", {"partition": "uniform", "bins": 5}) == DebiasedL1(Uniform(5))
    assert DebiasedL2(Uniform(7)).interval_estimator() == RootMeanSquareError(Uniform(7))
    assert DebiasedL1(Uniform(7)).interval_estimator() == BinnedError(Uniform(7))


# Faults of peers


def test_certain_rows_are_in_the_sum_and_in_n() -> None:
    # Sun et al.'s half-open bins drop p = 1 while n counts it; T-Cal's put it into an extra bin
    view = View([1.0, 1.0, 0.95, 0.0, 0.0], [0, 0, 0, 1, 1])
    answer = DebiasedL2(Uniform(10))(view)
    # (.9, 1]: u = −1, −1, −.95 has pairs 1 + 2 · .95 of 3; [0, .1]: u = 1, 1
    assert answer.parts["squared"] == pytest.approx(0.6 * (1 + 2 * 0.95) / 3 + 0.4, rel=1e-12)
    assert answer.n == 5


def test_bins_are_as_requested_however_often_scores_repeat() -> None:
    # uncertainty-calibration changes to exact-value bins when it sees duplicates
    p = np.repeat([0.1, 0.2, 0.3, 0.4], 25)
    assert DebiasedL2(EqualMass(2))(View(p, np.arange(100) % 2)).settings["occupied_bins"] == 2


def test_ties_do_not_depend_on_the_order_of_rows() -> None:
    # torch-uncertainty: adaptive bins split ties by the order of rows
    rng = np.random.default_rng(10)
    p, y = rng.integers(1, 5, 200) / 5, rng.integers(0, 2, 200)
    for estimator in (DebiasedL2(), DebiasedL1()):
        orders = [rng.permutation(200) for _ in range(20)]
        assert len({round(estimator.value(View(p[o], y[o])), 12) for o in orders}) == 1


# Edge data


def test_without_a_pair_of_rows_there_is_no_number_and_a_note() -> None:
    for form in FORMS:
        answer = DebiasedL2(form=form)(View([0.3], [1]))
        assert np.isnan(answer.value)
        assert [note.code for note in answer.notes] == ["TN112", "TN155"]
        assert answer.to_dict()["value"] is None
    estimate = to.measure(Predictions([1], [0.3]), "debiased_l2")
    assert np.isnan(estimate.value)
    assert estimate.interval is None


@pytest.mark.parametrize(
    ("view", "square"),
    [
        (View([0.3] * 4, [1, 1, 1, 1]), 0.49),
        (View([0.3] * 4, [0, 0, 0, 0]), 0.09),
        (View([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]), 0.0),
        (View([0.0, 0.0, 1.0, 1.0], [1, 1, 0, 0]), 1.0),
        (View([0.2, 0.2, 0.9], [1, 1, 1], [1, 1, 0]), 0.64),
    ],
)
def test_edge_data_give_a_number(view: View, square: float) -> None:
    assert DebiasedL2().signed_value(view) == pytest.approx(square, abs=1e-14)
    assert DebiasedL1().value(view) == pytest.approx(square**0.5, abs=1e-14)  # no scatter, nothing to take off


def test_a_vector_per_row_is_refused() -> None:
    joint = View([[0.5, 0.3, 0.2]], [[1, 0, 0]])
    for estimator in (DebiasedL2(), DebiasedL1(), DebiasedL2(form="kumar")):
        with refused("TO205"):
            estimator.value(joint)
        with refused("TO205"):
            estimator.cell_statistic(joint)


@pytest.mark.slow
def test_draws_of_many_rows_read_off_bins_are_those_of_single_rows(monkeypatch):
    # 50,000 rows in 76 bins: the square's noise floor from sums of bins agrees with that from pairs of rows to 1 %
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    preds = to.Predictions((rng.random(50_000) < p).astype(int), p)
    fast = to.measure(preds, "debiased_l2", resamples=50)
    monkeypatch.setattr(debiased, "MIN_ROWS_FOR_BIN_DRAWS", 10**9)
    slow = to.measure(preds, "debiased_l2", resamples=50)
    assert fast.value == slow.value
    assert fast.noise_floor == pytest.approx(slow.noise_floor, rel=0.01)


def test_an_error_within_the_bins_is_noted_and_an_even_one_is_not():
    # a wave of 11 periods cancels in bins of a twentieth, and shows in those of an eightieth
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    oscillating = np.clip(p + 0.2 * np.sin(22 * np.pi * p), 0, 1)
    wave, even = (
        to.measure(to.Predictions((rng.random(5000) < r).astype(int), p), "debiased_l2", resamples=50)
        for r in (oscillating, 0.8 * p + 0.05)
    )
    assert "TN114" in [note.code for note in wave.notes]
    assert "TN114" not in [note.code for note in even.notes]


def test_a_distortion_of_the_slope_is_not_noted_as_an_error_within_the_bins():
    # The interval covers the full error of these designs. An error within the bins is noted if it is significant at
    # 5 % and exceeds half of the half-width: of 60 data sets at most 1 in 100 is expected, so more than 4 have a
    # probability below 0.001. Without a condition on the size, 7 are noted.
    n_noted = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for z, slope in ((rng.normal(0, 2, 2500), 0.4), (rng.normal(3, 2.5, 8000), 0.3)):
            y = (rng.random(len(z)) < expit(slope * z)).astype(int)
            estimate = to.measure(to.Predictions(y, expit(z)), "debiased_l2", interval=None)
            n_noted += "TN114" in [note.code for note in estimate.notes]
    assert n_noted <= 4


def test_the_note_on_finer_bins_states_a_larger_error_than_the_estimate():
    n_noted = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = rng.random(3000)
        cancelling = p + 0.3 * ((p > 0.44) & (p < 0.47)) - 0.3 * ((p >= 0.47) & (p < 0.5))
        preds = to.Predictions((rng.random(3000) < cancelling).astype(int), p)
        estimate = to.measure(preds, "debiased_l2", interval=None)
        for note in estimate.notes:
            if note.code == "TN114":
                coarse, n_bins, fine, n_finer_bins = re.findall(r"\d+(?:\.\d+)?", note.text)[:4]
                assert float(coarse) == pytest.approx(estimate.value, abs=5e-5)
                assert float(fine) > float(coarse)
                assert int(n_finer_bins) == 4 * int(n_bins)
                n_noted += 1
    assert n_noted >= 10  # 0.71 of 200 other data sets, so fewer of 30 have a probability below 0.0001


def test_the_variance_of_the_gap_of_a_bin_is_that_of_its_residuals_but_not_below_the_binomial_one():
    # One event in four rows. The variance is that of the mean residual, (Σr² - n·gap²)/n², but at least the binomial
    # one, Σp(1 - p)/n², which is the larger one for p = 0.5.
    y = np.array([1, 0, 0, 0])
    expected = {0.1: (0.84 - 4 * 0.15**2) / 16, 0.5: 4 * 0.25 / 16}
    for p, variance in expected.items():
        view = as_lens("positive").views(Predictions(y, np.full(4, p)))[0]
        assert debiased._gap_variance(view.binned(ONE.fit(view))) == pytest.approx([variance], rel=1e-12)
