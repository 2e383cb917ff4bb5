"""Are KS, ECCE-MAD and ECCE-R the published numbers, whatever the order of tied rows?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.estimators.values_by_view import measure_views
from trueodds import Predictions, measure
from trueodds.core.typing import Array
from trueodds.estimators.cumulative import CumulativeError, CumulativeRange, KolmogorovSmirnov
from trueodds.estimators.distinct_scores import DistinctScoreError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

ALL = (KolmogorovSmirnov(), CumulativeError(), CumulativeRange())


@cache
def preds(name: str) -> Predictions:
    file = {"b": "b_multi1000", "c": "c_binary500", "c2": "c2_binary500_ties"}[name]
    table = reference.frame(f"estimators/{file}.csv")
    return Predictions(table["y"], table["p"] if "p" in table else reference.columns(table))


def within_top_two(Y: Array, P: Array) -> tuple[Array, Array]:
    """Whether the class that came is one of the two most probable: its probability is the sum of theirs."""
    two = np.argsort(-P, axis=1, kind="stable")[:, :2]
    predicted = np.take_along_axis(P, two, axis=1).sum(axis=1)
    observed = np.take_along_axis(Y, two, axis=1).sum(axis=1)
    return np.stack([1 - predicted, predicted], axis=1), np.stack([1 - observed, observed], axis=1)


# By hand


def test_three_scores_by_hand() -> None:
    # w(y − p)/Σw at .1, .4, .7: −.1/4, 2·.6/4, −.7/4. Their running sums: −.025, .275, .1, after 0.
    view = View([0.4, 0.7, 0.1], [1, 0, 0], [2, 1, 1])
    assert float(KolmogorovSmirnov()(view)) == pytest.approx(0.275, rel=1e-14)
    assert float(CumulativeRange()(view)) == pytest.approx(0.3, rel=1e-14)


def test_the_range_counts_the_start_at_zero() -> None:
    # Sums −.2 and −.45: the lowest lies .45 below the start, though the highest sum is −.2.
    assert float(CumulativeRange()(View([0.4, 0.5], [0, 0]))) == pytest.approx(0.45, rel=1e-14)


# Reference numbers: shared golden estimators (official values executed, crosscheck.json)

TABLE: list[tuple[str, str, Any, DistinctScoreError]] = [
    ("c.ecce_mad_eq_ks", "c", "positive", CumulativeError()),
    ("c.ecce_mad_eq_ks", "c", "positive", KolmogorovSmirnov()),
    ("c.ecce_r", "c", "positive", CumulativeRange()),
    ("b_conf.ecce_mad_eq_ks", "b", "confidence", KolmogorovSmirnov()),
    ("b_conf.ecce_r", "b", "confidence", CumulativeRange()),
    ("c2.ecce_mad.tie_blocks", "c2", "positive", CumulativeError()),
    ("c2.ecce_r.tie_blocks", "c2", "positive", CumulativeRange()),
    *((f"b.class{c}.ks", "b", f"class:{c}", KolmogorovSmirnov()) for c in range(4)),
    ("b.ks_2nd_top", "b", "rank:2", KolmogorovSmirnov()),
    ("b.ks_within_top2", "b", within_top_two, KolmogorovSmirnov()),
]


@pytest.mark.reference
@pytest.mark.parametrize(("key", "name", "lens", "estimator"), TABLE, ids=[row[0] + " " + row[3].name for row in TABLE])
def test_a_reference_number(key: str, name: str, lens: Any, estimator: DistinctScoreError) -> None:
    (view,) = as_lens(lens).views(preds(name))
    assert float(estimator(view)) == pytest.approx(reference.estimators()[key]["value"], rel=1e-10)


@pytest.mark.reference
def test_the_classwise_error_is_the_mean_of_the_classes() -> None:
    total, parts = measure_views(KolmogorovSmirnov(), as_lens("classwise").views(preds("b")))
    truth = [reference.estimators()[f"b.class{c}.ks"]["value"] for c in range(4)]
    assert list(parts.values()) == pytest.approx(truth, rel=1e-10)
    assert total == pytest.approx(np.mean(truth), rel=1e-10)


# Peers' faults


@pytest.mark.reference
def test_the_number_from_rows_in_file_order_is_not_ours() -> None:
    # With 21 distinct scores, sums taken inside a run of equal ones give .0797 in this order, .0795 at its ends.
    (view,) = as_lens("positive").views(preds("c2"))
    inside = reference.estimators()["c2.ecce_r.stable_order"]["value"]
    assert float(CumulativeRange()(view)) < inside - 1e-4


@pytest.mark.parametrize("estimator", ALL, ids=lambda param: param.name)
def test_tied_scores_are_pooled_whatever_their_order(estimator: DistinctScoreError) -> None:
    # The paper orders ties at random; scoringrules' curve depends on the order of rows. Sums inside the
    # run of the one score .5 would reach 20 · .5 / 40 = .25 when sorted by outcome; at its end they are 0.
    p, y = np.full(40, 0.5), np.repeat([0.0, 1.0], 20)
    for order in (slice(None), slice(None, None, -1), np.random.default_rng(0).permutation(40)):
        assert float(estimator(View(p, y[order]))) == 0


# Bounds


def test_ks_lies_between_the_mean_gap_and_the_error_over_distinct_scores_and_the_range_up_to_twice_it() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        p, y, w = rng.integers(0, 11, n) / 10, rng.random(n).round(1), rng.random(n) + 0.1
        view = View(p, y, w)
        residual = w * (y - p) / w.sum()
        distinct_error = sum(abs(residual[p == score].sum()) for score in np.unique(p))
        ks, cumulative_range = KolmogorovSmirnov().value(view), CumulativeRange().value(view)
        assert abs(residual.sum()) - 1e-12 <= ks <= min(distinct_error, cumulative_range) + 1e-12
        assert cumulative_range <= min(distinct_error, 2 * ks) + 1e-12


def test_stretching_the_scores_while_keeping_residuals_changes_nothing() -> None:
    # The sums see only the order of the scores: one reader at other scores gives the same.
    residual = np.random.default_rng(1).normal(size=(5, 30))
    s = np.linspace(0.01, 0.99, 30)
    for estimator in ALL:
        original, cubed = (estimator.evaluate_scores(at, np.full(30, 1 / 30), View(at, at)) for at in (s, s**3))
        assert np.array_equal(original(s, 0 * residual, residual), cubed(s, 0 * residual, residual))


# Chance


def test_the_mean_of_a_calibrated_model_is_that_of_brownian_motion() -> None:
    # Given p, the sums of y − p are a martingale of total variance Σp(1 − p)/n², so KS/σ has the law of the largest
    # |W| on [0, 1], mean sqrt(π/2) = 1.2533, and ECCE-R that of its range, mean sqrt(8/π) = 1.5958. Each step has two
    # values, so W embeds the sums and leaves them by at most one step of 1/n at each end. 300 draws err by sd/√300;
    # 4.5 of those leave one failure in 1e5 (and the seed is fixed).
    rng = np.random.default_rng(21)
    n, draws = 10_000, 300
    p = 1 / (1 + np.exp(-1.5 * rng.normal(size=n)))
    sigma = np.sqrt((p * (1 - p)).sum()) / n
    views = [View(p, (rng.random(n) < p).astype(float)) for _ in range(draws)]
    for estimator, mean, ends in (
        (KolmogorovSmirnov(), np.sqrt(np.pi / 2), 1),
        (CumulativeRange(), np.sqrt(8 / np.pi), 2),
    ):
        values = np.array([estimator.value(view) for view in views]) / sigma
        tolerance = 4.5 * values.std() / draws**0.5
        assert mean - ends / (n * sigma) - tolerance < values.mean() < mean + tolerance


def test_a_shift_of_all_probabilities_is_found() -> None:
    # Every outcome comes at p + .1, so both errors tend to .1 from above; 4.5 standard errors of 20 draws, and the
    # bias of a drifting walk is at most the noise of its own end, sd of the mean residual ≈ .45/√n = .0014.
    rng = np.random.default_rng(22)
    n = 100_000
    p = rng.random((20, n)) * 0.8
    y = (rng.random((20, n)) < p + 0.1).astype(float)
    for estimator in (KolmogorovSmirnov(), CumulativeRange()):
        values = np.array([estimator.value(View(*pair)) for pair in zip(p, y, strict=True)])
        assert values.mean() == pytest.approx(0.1, abs=4.5 * values.std() / 20**0.5 + 0.0014)


# Edges


@pytest.mark.parametrize("estimator", ALL, ids=lambda param: param.name)
def test_the_worst_data_give_the_number_that_belongs_to_them(estimator: DistinctScoreError) -> None:
    assert float(estimator(View([0.3], [1]))) == pytest.approx(0.7)
    assert float(estimator(View([0.0, 1.0, 1.0], [0, 1, 1]))) == 0  # all right, said for sure
    assert float(estimator(View([1.0, 1.0], [0, 0]))) == 1  # all wrong, said for sure
    assert float(estimator(View([0.2, 0.2, 0.2], [1, 0, 0]))) == pytest.approx(1 / 3 - 0.2)
    assert float(estimator(View([0.2, 0.9], [1, 0], [1, 0]))) == pytest.approx(0.8)  # a row of weight 0 is none


def test_both_names_are_one_quantity_and_it_has_interval_and_floor() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(300)
    data = Predictions((rng.random(300) < p**2).astype(int), p)
    one, other = (measure(data, name, rng=0) for name in ("ks", "ecce_mad"))
    assert (one.value, one.interval, one.noise_floor) == (other.value, other.interval, other.noise_floor)
    assert one.interval is not None
    assert one.noise_floor is not None
    # The truth is E(p − p²) = 1/6 over uniform scores: all residuals have one sign.
    assert one.interval.low < 1 / 6 < one.interval.high
    assert one.noise_floor < one.value
