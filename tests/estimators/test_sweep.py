"""Does the sweep stop where the published one does, for rows, weights, ties and every draw?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds import Predictions
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.binned import BinnedError, RootMeanSquareError
from trueodds.estimators.distinct_scores import DistinctScores
from trueodds.estimators.sweep import SweepError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


def sweep_bin_by_bin(view: View, base: str, order: float) -> tuple[float, int]:
    """The definition in plain loops: cuts by rank with equal scores together, or edges i/k, until a rate falls."""
    repeated = (view.w == np.rint(view.w)).all()
    rows = np.argsort(view.p, kind="stable")
    p, y, w = view.p[rows], view.y[rows], view.w[rows]
    mass = np.cumsum(w)
    n = round(mass[-1]) if repeated else int((w > 0).sum())

    def cut(k: int) -> list[Array]:
        if base == "uniform":
            place = np.searchsorted(np.arange(1, k) / k, p, "left")
        else:
            place = np.searchsorted([p[np.argmax(mass >= j * mass[-1] / k - 1e-9)] for j in range(1, k)], p, "left")
        groups = [np.flatnonzero(place == b) for b in np.unique(place)]
        return [rows for rows in groups if w[rows].sum() > 0]

    n_bins = 1
    for k in range(2, n):
        rates = [w[rows] @ y[rows] / w[rows].sum() for rows in cut(k)]
        if (np.diff(rates) < -1e-9).any():
            break
        n_bins = k
    total = sum(w[rows].sum() * abs(w[rows] @ (p - y)[rows] / w[rows].sum()) ** order for rows in cut(n_bins))
    return float((total / mass[-1]) ** (1 / order)), n_bins


# By hand


def test_the_search_stops_before_the_first_number_of_bins_that_falls() -> None:
    # Two bins: rates 1/3, 2/3. Three bins of two rows: 0, 1, 1/2 falls, so two it is; more are never asked about.
    view = View([0.1, 0.2, 0.3, 0.7, 0.75, 0.85], [0, 0, 1, 1, 0, 1])
    assert SweepError().bins(view) == 2
    # bins {.1 .2 .3}: said .2, seen 1/3; {.7 .75 .85}: said 2.3/3, seen 2/3: gaps .4/3 and .3/3
    assert SweepError(order=1).value(view) == pytest.approx(0.7 / 6, rel=1e-12)
    assert SweepError(order=2).value(view) == pytest.approx(((0.4**2 + 0.3**2) / 18) ** 0.5, rel=1e-12)
    assert SweepError(order=np.inf).value(view) == pytest.approx(0.4 / 3, rel=1e-12)


def test_a_score_that_does_not_rank_is_measured_in_one_bin() -> None:
    view = View([0.2, 0.4, 0.6, 0.8], [1, 1, 0, 0])
    assert SweepError().bins(view) == SweepError("uniform").bins(view) == 1
    assert SweepError().value(view) == pytest.approx(0.0, abs=1e-15)  # said 1/2, seen 1/2


def test_perfect_ranking_takes_all_bins_but_one() -> None:
    # Official: the number of bins is capped at n − 1.
    view = View([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1])
    assert SweepError().bins(view) == 3
    assert SweepError(order=1).value(view) == pytest.approx(0.3, rel=1e-12)


# Reference numbers (read against the authors' code, not run with it)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "estimator"),
    [
        ("b.confidence_ece_sweep.em.l1", SweepError(order=1)),
        ("b.confidence_ece_sweep.ew.l1", SweepError("uniform", 1)),
        ("b.confidence_ece_sweep.em.l2", SweepError()),
        ("b.confidence_ece_sweep.ew.l2", SweepError("uniform")),
        ("c.ece_sweep.em.l2", SweepError()),
    ],
)
def test_a_reference_number(key: str, estimator: SweepError) -> None:
    table = reference.frame(f"estimators/{'b_multi1000' if key[0] == 'b' else 'c_binary500'}.csv")
    preds = Predictions(table["y"], reference.columns(table) if key[0] == "b" else table["p"])
    (view,) = as_lens("confidence" if key[0] == "b" else "positive").views(preds)
    answer = estimator(view)
    assert answer.value == pytest.approx(golden()[key]["value"], rel=1e-10)
    assert answer.settings["occupied_bins"] == golden()[key]["n_bins"]


# The fast search is the slow one


@pytest.mark.parametrize("base", ["equal-mass", "uniform"])
@pytest.mark.parametrize("scores", ["floats", "twentieths"])
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
def test_the_search_agrees_with_plain_loops(base: str, scores: str, weights: str) -> None:
    rng = np.random.default_rng(1)
    for i in range(40):
        n = int(rng.integers(1, 36))
        p = rng.random(n) if scores == "floats" else rng.integers(0, 21, n) / 20
        sharp = p if i % 2 else 1 / (1 + np.exp(-30 * (p - 0.5)))  # nearly separable: many bins, few places to fall
        w = {"none": np.ones(n), "whole": rng.integers(0, 4, n), "real": rng.random(n)}[weights].astype(float)
        w[0] = max(w[0], 1)
        view = View(p, (rng.random(n) < sharp).astype(float), w)
        value, bins = sweep_bin_by_bin(view, base, 2)
        assert SweepError(base).bins(view) == bins
        assert SweepError(base).value(view) == pytest.approx(value, rel=1e-10, abs=1e-12)


def test_rows_of_tiny_weight_do_not_stop_the_search() -> None:
    # Rates of exactly 1 differ by the rounding of cumulative sums, relative to all weight and not to the bin's.
    p = np.linspace(0.05, 0.95, 40)
    w = np.where(np.arange(40) % 3 == 0, 1e-7, np.pi)
    view = View(p, (p > 0.3).astype(float), w)
    assert SweepError().bins(view) == SweepError("uniform").bins(view) == 39


def test_draws_choose_their_own_bins() -> None:
    rng = np.random.default_rng(2)
    p = rng.integers(1, 100, 300) / 100
    view = View(p, (rng.random(300) < p).astype(float), rng.integers(0, 3, 300))
    for estimator in (SweepError(), SweepError("uniform", 1)):
        one = estimator.cell_statistic(view)
        w, wp = (np.bincount(one.index, x, one.size)[None] for x in (view.w, view.w * view.p))
        drawn = (rng.random((50, 300)) < p).astype(float)
        wy = np.stack([np.bincount(one.index, view.w * y, one.size) for y in drawn])
        views = [view.with_y(y) for y in drawn]
        assert one.statistic(w, wp, wy) == pytest.approx([estimator.value(one) for one in views], rel=1e-10)
        assert len({estimator.bins(one) for one in views}) > 2


def test_resamples_of_rows_choose_their_own_bins() -> None:
    rng = np.random.default_rng(12)
    p = rng.integers(1, 100, 300) / 100
    view = View(p, (rng.random(300) < p).astype(float))
    one = SweepError().cell_statistic(view)
    rows = rng.integers(0, 300, (20, 300))
    w, wp, wy = (np.stack([np.bincount(one.index[r], x[r], one.size) for r in rows]) for x in (view.w, view.p, view.y))
    assert one.statistic(w, wp, wy) == pytest.approx([SweepError().value(view.take(r)) for r in rows], rel=1e-10)
    assert one.centered_norms(w[0], wp[0], wy[0], (w, wp, wy)) is None  # no norm


def test_the_null_draws_of_the_facade_are_refitted_row_by_row() -> None:
    # The generic path evaluates every redrawn view anew; the fast one must give the same draws from the same seed.
    class RowByRow(SweepError):
        def cell_statistic(self, view: View) -> None:  # type: ignore[override]
            return None

    rng = np.random.default_rng(3)
    p = rng.random(120)
    preds = Predictions(rng.random(120) < p, p)
    fast, slow = (
        to.test(preds, "consistency", statistic=statistic, resamples=99) for statistic in (SweepError(), RowByRow())
    )
    assert fast.pvalue == slow.pvalue
    assert fast.statistic == pytest.approx(slow.statistic, rel=1e-12)


# What it is and is not


def test_one_of_the_plain_binnings_is_chosen() -> None:
    rng = np.random.default_rng(4)
    p = rng.random(400)
    view = View(p, (rng.random(400) < p).astype(float))
    k = SweepError("uniform").bins(view)
    assert SweepError("uniform").value(view) == pytest.approx(RootMeanSquareError(Uniform(k)).value(view), rel=1e-12)
    assert SweepError("uniform", 1).value(view) == pytest.approx(BinnedError(Uniform(k)).value(view), rel=1e-12)


def test_a_known_error_is_found_and_the_floor_is_below_that_of_fifteen_bins() -> None:
    # Truth: said p, comes at p + .1 everywhere, so the error is .1 in any bins, and by the triangle inequality the
    # value is off by at most the root mean square noise of k bins. Its square is at most χ²_k / 4n, which exceeds
    # (k + 2 sqrt(k x) + 2x) / 4n with probability e^-x (Laurent & Massart 2000); x = 11.5 is one in 1e5.
    rng = np.random.default_rng(5)
    p = rng.uniform(0, 0.9, 100_000)
    view = View(p, (rng.random(len(p)) < p + 0.1).astype(float))
    k = SweepError().bins(view)
    noise = (k + 2 * (11.5 * k) ** 0.5 + 23) / 4e5
    assert noise**0.5 < 0.03  # narrow enough to tell
    assert SweepError().value(view) == pytest.approx(0.1, abs=noise**0.5)
    # Fewer bins than 15 mean a lower floor where the sweep stops early.
    q = rng.uniform(0.4, 0.6, 300)
    preds = Predictions(rng.random(300) < q, q)
    swept = to.measure(preds, "sweep", order=1, resamples=50)
    fixed = to.measure(preds, "ece", partition="equal-mass", resamples=50)
    assert swept.noise_floor is not None
    assert fixed.noise_floor is not None
    assert swept.noise_floor < fixed.noise_floor


def test_ties_do_not_depend_on_the_order_of_rows() -> None:
    # torch-uncertainty, and the authors' ranks: equal scores are split by the order of rows
    rng = np.random.default_rng(6)
    p, y = rng.integers(1, 5, 200) / 5, rng.integers(0, 2, 200)
    orders = [rng.permutation(200) for _ in range(20)]
    assert len({round(SweepError().value(View(p[o], y[o])), 13) for o in orders}) == 1


@pytest.mark.parametrize(
    ("view", "value"),
    [
        (View([0.7], [1]), 0.3),
        (View([0.7, 0.2], [1, 0]), 0.05),  # at most n − 1 bins: one
        (View([0.3] * 9, [0, 1, 0] * 3), 1 / 30),
        (View([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]), 0.0),
        (View([0.0, 0.0, 1.0, 1.0], [1, 1, 0, 0]), 0.0),  # one bin: said 1/2, seen 1/2
        (View([0.1, 0.2, 0.3, 1.0], [1, 1, 1, 1], [0, 0, 0, 2]), 0.0),
    ],
)
def test_edge_data_give_a_number(view: View, value: float) -> None:
    assert SweepError(order=1).value(view) == pytest.approx(value, abs=1e-14)
    assert np.isfinite(SweepError("uniform").value(view))


def test_many_bins_are_found_at_once() -> None:
    # All right and separable: every number of bins up to n − 1 is monotone. A search of one number after the other,
    # each over all rows, would take minutes.
    p = np.linspace(0, 1, 200_000)
    assert SweepError().bins(View(p, (p > 0.5).astype(float))) == 199_999
    assert SweepError("uniform").bins(View(p, np.ones(len(p)))) == 199_999


# The facade


def test_the_facade_gives_floor_interval_and_settings() -> None:
    assert ESTIMATORS.make("sweep", {"partition": "uniform", "order": 1}) == SweepError("uniform", 1)
    rng = np.random.default_rng(7)
    p = rng.random(500)
    estimate = to.measure(Predictions(rng.random(500) < p**2, p), "sweep", resamples=200)
    assert estimate.interval is not None
    assert estimate.interval.method == "noise-floor"
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert estimate.noise_floor is not None
    assert 0 < estimate.noise_floor < estimate.value
    assert (estimate.settings["partition"], estimate.settings["order"]) == ("sweep over equal-mass", 2.0)


def test_a_tally_gives_nearly_the_number_of_its_rows() -> None:
    rng = np.random.default_rng(8)
    p = np.round(rng.random(600), 2)  # hundredths: a cell holds one score, so the cells are the rows
    data = Predictions(rng.random(600) < p, p)
    exact, tallied = (to.measure(x, "sweep", interval=None).value for x in (data, to.tally(data)))
    assert tallied == pytest.approx(exact, rel=1e-10)


def test_draws_beyond_4096_scores_share_cells_and_the_value_does_not() -> None:
    rng = np.random.default_rng(9)
    p = rng.random(6000)
    view = View(p, (rng.random(6000) < p).astype(float))
    one = SweepError().cell_statistic(view)
    assert isinstance(one, DistinctScores)
    assert one.size <= 4096
    assert one.value() == pytest.approx(sweep_bin_by_bin(view, "equal-mass", 2)[0], rel=1e-10)
