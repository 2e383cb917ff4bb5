"""Are the Laplace-kernel errors the sums over all pairs of rows, and MMCE what its papers print?"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import reference
from tests.data.refused import refused
from trueodds import Predictions, measure
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.distinct_scores import DistinctScoreError
from trueodds.estimators.laplace_kernel import LaplaceError, MeanEmbeddingError
from trueodds.estimators.skce import SquaredKernelError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

UNBIASED, WEIGHTED = MeanEmbeddingError(form="unbiased"), MeanEmbeddingError(form="weighted")


@cache
def view_of(name: str) -> View:
    table = reference.frame(f"estimators/{'c_binary500' if name == 'c' else 'b_multi1000'}.csv")
    preds = Predictions(table["y"], table["p"] if name == "c" else reference.columns(table))
    return as_lens("positive" if name == "c" else "confidence").views(preds)[0]


def pairs(view: View, bandwidth: float) -> Array:
    """w w' (y − p)(y' − p') k for every two rows."""
    e = view.w * (view.y - view.p)
    return np.outer(e, e) * np.exp(-np.abs(np.subtract.outer(view.p, view.p)) / bandwidth)


def tied(seed: int, n: int = 60) -> View:
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 11, n) / 10
    return View(p, rng.random(n).round(1), rng.random(n))


# By hand


def test_two_scores_by_hand() -> None:
    # e = (.1, −.6)/2, k = e^−.3: V = (.01 + .36 − 2·.06 k)/4; without the pairs of a row with itself −.12 k / 2.
    view = View([0.9, 0.6], [1, 0])
    k1, k4 = math.exp(-0.3), math.exp(-0.3 / 0.4)
    assert float(LaplaceError()(view)) == pytest.approx(math.sqrt(0.37 - 0.12 * k1) / 2, rel=1e-14)
    assert float(MeanEmbeddingError()(view)) == pytest.approx(math.sqrt(0.37 - 0.12 * k4) / 2, rel=1e-14)
    assert float(UNBIASED(view)) == pytest.approx(-0.06 * k4, rel=1e-14)
    # One row a side: .1 at .9 against .6 at .6.
    assert float(WEIGHTED(view)) == pytest.approx(math.sqrt(0.37 - 0.12 * k4), rel=1e-14)


def test_weights_by_hand() -> None:
    # One score, w(y − p) = 3·.1, −.9: V = (−.6/4)²; unbiased −2·.27/(16 − 10) with importance weights.
    view = View([0.9, 0.9], [1, 0], [3, 1])
    assert float(LaplaceError()(view)) == pytest.approx(0.15, rel=1e-14)
    assert float(UNBIASED(view)) == pytest.approx(-0.09, rel=1e-14)
    # Each side is divided by its own weight, so 3 rows of the one are as one: |.1 − .9|.
    assert float(WEIGHTED(view)) == pytest.approx(0.8, rel=1e-14)


# Reference numbers: shared golden estimators (mmce_v checked against netcal, the others plain double loops)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "estimator"),
    [
        ("c.laplace_kce_theta1", "c", LaplaceError()),
        ("c.mmce_v_laplace0.4", "c", MeanEmbeddingError()),
        ("c.mmce_v_laplace0.4", "c", LaplaceError(0.4)),
        ("b_conf.mmce_v_laplace0.4", "b", MeanEmbeddingError()),
        ("c.mmce_u2_laplace0.4", "c", UNBIASED),
        ("b_conf.mmce_u2_laplace0.4", "b", UNBIASED),
        ("b_conf.mmce_w_laplace0.4", "b", WEIGHTED),
    ],
)
def test_a_reference_number(key: str, name: str, estimator: DistinctScoreError) -> None:
    assert float(estimator(view_of(name))) == pytest.approx(reference.estimators()[key]["value"], rel=1e-10)


@pytest.mark.parametrize("bandwidth", [1e-9, 0.03, 0.4, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_one_by_one_give_the_same(bandwidth: float, seed: int) -> None:
    view = tied(seed)
    every, w = pairs(view, bandwidth), view.w
    biased = math.sqrt(max(every.sum(), 0)) / w.sum()
    assert LaplaceError(bandwidth).value(view) == pytest.approx(biased, rel=1e-10, abs=1e-9)
    single = (every.sum() - np.trace(every)) / (w.sum() ** 2 - w @ w)
    assert MeanEmbeddingError(bandwidth, "unbiased").value(view) == pytest.approx(single, rel=1e-10, abs=1e-14)
    # The weighted form from its three sums: votes count for both sides.
    k = np.exp(-np.abs(np.subtract.outer(view.p, view.p)) / bandwidth)
    events, nonevents = w * view.y * (1 - view.p), w * (1 - view.y) * view.p
    m, others = (w * view.y).sum(), (w * (1 - view.y)).sum()
    square = (
        events @ k @ events / m**2 + nonevents @ k @ nonevents / others**2 - 2 * events @ k @ nonevents / (m * others)
    )
    value = MeanEmbeddingError(bandwidth, "weighted").value(view)
    assert value == pytest.approx(math.sqrt(max(square, 0)), rel=1e-10, abs=1e-9)


def test_the_unbiased_form_is_half_of_the_squared_kernel_error_of_two_columns() -> None:
    view = tied(5)
    two = SquaredKernelError(form="unbiased", kernel="tv-exponential", bandwidth=0.4)
    assert UNBIASED.value(view) == pytest.approx(two.value(view) / 2, rel=1e-14)


# Peers' faults


def test_the_last_row_counts() -> None:
    # relplot draws randint(n − 1), so its last row is never sampled. Here it alone is off.
    p, y = np.r_[np.zeros(9), 0.5], np.r_[np.zeros(9), 1.0]
    for order in (slice(None), slice(None, None, -1)):
        assert float(LaplaceError()(View(p[order], y[order]))) == pytest.approx(0.05, rel=1e-14)


# What the forms mean


def test_the_weighted_form_of_a_calibrated_model_is_not_zero_and_says_so() -> None:
    # All say .8 and 80 % came: the sides weigh .2 and .8 at one score, whose difference is .6.
    view = View([0.8] * 5, [1, 1, 1, 1, 0])
    estimate = WEIGHTED(view)
    assert float(estimate) == pytest.approx(0.6, rel=1e-14)
    assert [note.code for note in estimate.notes] == ["TN121"]
    assert float(MeanEmbeddingError()(view)) == pytest.approx(0, abs=1e-15)
    # Half came, as said: balanced sides are as calibrated ones should be.
    assert float(WEIGHTED(View([0.5, 0.5], [1, 0]))) == pytest.approx(0, abs=1e-15)


def test_an_outcome_that_never_occurred_is_no_perfect_score() -> None:
    # The official code gives 0, the best value there is. The other side alone is left: mean of 1 − p = .3.
    estimate = WEIGHTED(View([0.7, 0.7], [1, 1]))
    assert float(estimate) == pytest.approx(0.3, rel=1e-14)
    assert [note.code for note in estimate.notes] == ["TN121", "TN122"]
    assert float(WEIGHTED(View([0.7, 0.7], [0, 0]))) == pytest.approx(0.7, rel=1e-14)


def test_one_row_has_no_pair() -> None:
    estimate = UNBIASED(View([0.3], [1]))
    assert math.isnan(float(estimate))
    assert [note.code for note in estimate.notes] == ["TN118", "TN155"]
    assert float(LaplaceError()(View([0.3], [1]))) == pytest.approx(0.7, rel=1e-14)


def test_the_error_is_a_norm_below_the_error_over_distinct_scores() -> None:
    rng = np.random.default_rng(2)
    s = np.sort(rng.random(20))
    read = LaplaceError(0.3).evaluate_scores(s, np.full(20, 0.05), View(s, s))
    one, other = rng.normal(size=(2, 100, 20))
    zero = np.zeros(20)
    both = read(zero, zero, one + other)
    assert (both <= read(zero, zero, one) + read(zero, zero, other) + 1e-12).all()
    assert read(zero, one, 3 * one) == pytest.approx(2 * read(zero, zero, one), rel=1e-12)
    assert (read(zero, zero, one) <= np.abs(one).sum(axis=1)).all()


# Chance


def test_the_square_of_a_calibrated_model_has_its_exact_mean() -> None:
    # Given p, E(y_i − p_i)(y_j − p_j) is p(1 − p) for i = j and 0 else, so E V = Σp(1 − p)/n² and E U = 0. The mean of
    # 400 draws errs by sd/√400; 4.5 of those leave one failure in 1e5 (and the seed is fixed).
    rng = np.random.default_rng(3)
    n, draws = 200, 400
    p = rng.random(n)
    views = [View(p, (rng.random(n) < p) * 1.0) for _ in range(draws)]
    for estimator in (LaplaceError(), MeanEmbeddingError()):
        square = np.array([estimator.value(view) for view in views]) ** 2
        assert square.mean() == pytest.approx((p * (1 - p)).sum() / n**2, abs=4.5 * square.std() / draws**0.5)
    signed = np.array([UNBIASED.value(view) for view in views])
    assert signed.mean() == pytest.approx(0, abs=4.5 * signed.std() / draws**0.5)
    assert signed.min() < 0  # shown signed, never cut off at 0


@pytest.mark.parametrize("estimator", [LaplaceError(), MeanEmbeddingError(), UNBIASED, WEIGHTED], ids=lambda e: e.name)
def test_a_draw_costs_sums_and_is_the_value_of_its_rows(estimator: DistinctScoreError) -> None:
    rng = np.random.default_rng(4)
    n = 50
    view = View(rng.integers(0, 11, n) / 10, rng.integers(0, 2, n) * 1.0)
    one = estimator.cell_statistic(view)
    w, wp = (np.bincount(one.index, x, one.size)[None] for x in (view.w, view.p))
    labels = (rng.random((20, n)) < view.p) * 1.0
    wy = np.stack([np.bincount(one.index, y, one.size) for y in labels])
    assert one.statistic(w, wp, wy) == pytest.approx(
        np.array([estimator.value(view.with_y(y)) for y in labels]), rel=1e-10, abs=1e-12
    )
    rows = rng.integers(0, n, (20, n))
    sums = [np.stack([np.bincount(one.index[r], x[r], one.size) for r in rows]) for x in (view.w, view.p, view.y)]
    values = one.statistic(*(x.astype(float) for x in sums))
    assert values == pytest.approx(np.array([estimator.value(view.take(r)) for r in rows]), rel=1e-10, abs=1e-12)


# Settings, edges, the whole way


@pytest.mark.parametrize("bandwidth", [0, -1.0, float("nan"), float("inf"), True, None, "median"])
@pytest.mark.parametrize("estimator_type", [LaplaceError, MeanEmbeddingError])
def test_a_bandwidth_that_is_none_is_refused(estimator_type: Any, bandwidth: Any) -> None:
    with refused("TO203", fix="bandwidth"):
        estimator_type(bandwidth)


@pytest.mark.parametrize("estimator", [LaplaceError(), MeanEmbeddingError(), UNBIASED, WEIGHTED])
def test_a_vector_per_row_is_refused(estimator: DistinctScoreError) -> None:
    with refused("TO205", estimator.name, fix="confidence"):
        estimator(View([[0.2, 0.5, 0.3]], [[1, 0, 0]]))


def test_cells_of_many_rows_do_for_the_norm_and_are_refused_for_the_unbiased_form() -> None:
    view = tied(6)
    cells = view.pool(np.rint(view.p * 10).astype(int), 11)
    assert LaplaceError().value(cells) == pytest.approx(LaplaceError().value(view), rel=1e-10)
    assert WEIGHTED.value(cells) == pytest.approx(WEIGHTED.value(view), rel=1e-10)
    assert (MeanEmbeddingError().needs_rows, UNBIASED.needs_rows) == (False, True)
    with refused("TO205"):
        UNBIASED.value(cells)


@pytest.mark.parametrize("estimator", [LaplaceError(), MeanEmbeddingError(), WEIGHTED], ids=["laplace", "v", "w"])
def test_the_worst_data_give_the_number_that_belongs_to_them(estimator: DistinctScoreError) -> None:
    assert float(estimator(View([0.0, 1.0, 1.0], [0, 1, 1]))) == 0  # all right, said for sure
    assert float(estimator(View([1.0, 1.0], [0, 0]))) == pytest.approx(1)  # all wrong, said for sure
    assert float(estimator(View([0.2, 0.9], [1, 0], [1, 0]))) == pytest.approx(0.8)  # a row of weight 0 is none


def test_each_form_has_the_interval_that_suits_it() -> None:
    rng = np.random.default_rng(7)
    p = rng.random(300)
    data = Predictions((rng.random(300) < p**2).astype(int), p)
    # The truth is the norm of p² − p over uniform scores, here by the midpoint rule: .1267.
    grid = (np.arange(1000) + 0.5) / 1000
    d = (grid**2 - grid) / 1000
    truth = math.sqrt(d @ np.exp(-np.abs(np.subtract.outer(grid, grid)) / 0.4) @ d)
    biased = measure(data, "mmce", rng=0)
    assert biased.interval is not None
    assert biased.interval.method == "residual-norm"
    assert biased.interval.low < truth < biased.interval.high
    unbiased = measure(data, "mmce", form="unbiased", rng=0)
    assert unbiased.interval is not None
    assert unbiased.interval.method == "debiased"
    assert unbiased.interval.low < truth**2 < unbiased.interval.high
    assert unbiased.noise_floor == pytest.approx(0, abs=1e-3)
    weighted = measure(data, "mmce", form="weighted", rng=0)
    assert weighted.interval is None
    assert {"TN121", "TN201"} <= {note.code for note in weighted.notes}
    assert weighted.settings["form"] == "weighted"
    assert ESTIMATORS.make("laplace_kce", {"bandwidth": 0.4}) == LaplaceError(0.4)
