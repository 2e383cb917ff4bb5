"""Is the Dirichlet kernel error the published number, where the published code is right?"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.estimators.dirichlet_kde import BANDWIDTHS, DirichletError, DirichletKernel, likeliest_bandwidth
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

SETS = {"A_bin40": 2, "B_3c120": 3, "C_5c500": 5, "E_4c30_missing": 4}


@cache
def simplex() -> Any:
    return reference.golden("posocco/golden_simplex.json")


@cache
def preds(name: str) -> Predictions:
    table = reference.frame(f"posocco/data/{name}.csv")
    return Predictions(table["y"].astype(int), reference.columns(table, "s"))


def error(order: float = 1.0, bandwidth: float = 0.1, **settings: Any) -> DirichletError:
    return DirichletError(order=order, bandwidth=bandwidth, **settings)


def rows(n: int, k: int = 3, seed: int = 0) -> View:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return View(P, np.eye(k)[rng.integers(0, k, n)], rng.random(n) + 0.5, classes=k)


def scores(n: int, seed: int = 0) -> View:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return View(p, (rng.random(n) < p).astype(float), rng.random(n) + 0.5)


def test_by_hand() -> None:
    # Two rows: each is estimated by the other alone. |1 − .2| and |0 − .7|, their mean .75; squared (.64 + .49)/2
    view = View([0.2, 0.7], [0.0, 1.0])
    assert error().value(view) == pytest.approx(0.75, rel=1e-14)
    assert error(2.0).value(view) == pytest.approx(0.565, rel=1e-14)
    # As vectors of three classes: L1 is summed over the classes, |0 − .2| + |1 − .8| + 0 and |1 − .5| + |0 − .5| + 0
    joint = View([[0.2, 0.8, 0.0], [0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert error().value(joint) == pytest.approx((0.4 + 1.0) / 2, rel=1e-14)


def test_three_rows_with_densities_from_another_program() -> None:
    # Row .5 is estimated by the beta densities around .4 and .8 at .5 (scipy.stats), and so on.
    p, y, b = np.array([0.4, 0.5, 0.8]), np.array([1.0, 0.0, 1.0]), 0.07
    k = np.array([[beta.pdf(x, c / b + 1, (1 - c) / b + 1) for c in p] for x in p])
    np.fill_diagonal(k, 0.0)
    expected = np.abs(k @ y / k.sum(axis=1) - p).mean()
    assert error(bandwidth=b).value(View(p, y)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.reference
def test_reference_numbers() -> None:
    truth, table = reference.estimators(), reference.frame("estimators/b_multi1000.csv")
    some = Predictions(table["y"][:200].astype(int), reference.columns(table)[:200])
    (canonical,), (top,) = as_lens("canonical").views(some), as_lens("confidence").views(some)
    for estimator, view, key in (
        (error(), canonical, "b200.dirichlet_kde_canonical_L1_pow.bw0.1"),
        (error(2.0), canonical, "b200.dirichlet_kde_canonical_L2_pow.bw0.1"),
        (error(bandwidth=0.02), top, "b200.beta_kde_toplabel_L1.bw0.02"),
    ):
        assert estimator.value(view) == pytest.approx(truth[key]["value"], rel=1e-10), key


@pytest.mark.reference
@pytest.mark.parametrize("name", SETS)
def test_every_lens_order_and_bandwidth_of_the_study(name: str) -> None:
    lenses = {"canonical": "canonical", "marginal": "classwise", "marginal_sum": "classwise", "top_label": "confidence"}
    checked = 0
    for key, truth in simplex()[name].items():
        parts = key.split("/")
        if isinstance(truth, str) or len(parts) < 4 or parts[1] not in lenses:
            continue
        kind, what, b, p = parts
        order, bandwidth = float(p[2:]), float(b[2:])
        if kind == "float32" and (what != "canonical" or bandwidth < 0.05):
            continue  # its sums lose digits there, and densities under 1e-10 count as that
        views = as_lens(lenses[what]).views(preds(name))
        value = sum(error(order, bandwidth).value(view) for view in views)  # "marginal" is the sum over classes
        if what == "canonical" and SETS[name] == 2:
            value *= 2  # both columns of two classes
        assert value == pytest.approx(truth, rel=2.2e-6 if kind == "float32" else 1e-10), key
        checked += 1
    assert checked >= 20


@pytest.mark.reference
@pytest.mark.parametrize("name", SETS)
def test_two_classes_are_counted_once(name: str) -> None:
    # The authors' code gives twice the error of a single column.
    twice = simplex()[name]["float64/binary1col/b=0.05/p=1 (=2x)"]
    (view,) = as_lens("class:1").views(preds(name))
    assert error(bandwidth=0.05).value(view) == pytest.approx(twice / 2, rel=1e-10)


# The bandwidth


def test_each_kernel_integrates_to_one() -> None:
    # 200 Gauss–Legendre nodes integrate a polynomial of degree 399 exactly; p / b + (1 − p) / b = 10 and 50 here.
    x, weight = np.polynomial.legendre.leggauss(200)
    x, weight = (x + 1) / 2, weight / 2
    for b in (0.1, 0.02):
        p = np.array([[0.1], [0.5], [0.9]])
        added = DirichletKernel(p, b, 1e-12).constants(b)
        mass = [
            (weight * np.exp(a + c / b * np.log(x) + (1 - c) / b * np.log(1 - x))).sum()
            for a, c in zip(added, p, strict=True)
        ]
        assert np.allclose(mass, 1.0, rtol=1e-10)


def test_the_bandwidth_is_the_likeliest_of_the_grid() -> None:
    # The others' density at each row, by scipy.stats, without the extra log b that favors small bandwidths.
    rng = np.random.default_rng(0)
    p, w = rng.beta(2, 3, 60), rng.integers(1, 4, 60).astype(float)
    scores = []
    for b in BANDWIDTHS:
        k = beta.pdf(p[:, None], p[None] / b + 1, (1 - p[None]) / b + 1)
        np.fill_diagonal(k, 0.0)
        with np.errstate(divide="ignore"):  # densities too small for a float
            scores.append(w @ np.log(k @ w / (w.sum() - w)))
    assert likeliest_bandwidth(p[:, None], w, 1e-12) == BANDWIDTHS[int(np.argmax(scores))]


@pytest.mark.reference
def test_the_bandwidth_is_not_the_one_that_an_extra_logarithm_favors() -> None:
    # Reference: the authors' search gives .0005 for 40 scores, half of which then have no neighbor at all.
    official = simplex()["A_bin40"]["float64/get_bandwidth"]
    (view,) = as_lens("canonical").views(preds("A_bin40"))
    assert official == pytest.approx(0.00052, rel=0.01)
    assert DirichletError().settings_used(view)["bandwidth"] > 50 * official


def test_where_predictions_repeat_each_is_compared_with_its_equals() -> None:
    # Four rows at .2 with one 1, left out: 0, ⅓, ⅓, ⅓; two at .9 with one 1: the other one, 0 and 1
    view = View([0.2] * 4 + [0.9] * 2, [1, 0, 0, 0, 1, 0])
    estimator = DirichletError()
    assert estimator.settings_used(view)["bandwidth"] == pytest.approx(1e-5)
    expected = (0.2 + 3 * (1 / 3 - 0.2) + 0.9 + 0.1) / 6
    assert estimator.value(view) == pytest.approx(expected, rel=1e-12)


# Zeros, weights, draws, many rows


def test_exact_zeros_and_ones_give_a_number_and_a_note() -> None:
    # The authors' code gives NaN for them: −∞ · 0.
    view = View([[1.0, 0.0, 0.0], [0.7, 0.3, 0.0], [0.0, 0.2, 0.8], [0.2, 0.3, 0.5]], np.eye(3)[[0, 0, 2, 1]])
    estimate = error()(view)
    assert math.isfinite(estimate.value)
    assert [note.code for note in estimate.notes] == ["TN120"]
    assert "3 rows" in estimate.notes[0].text
    assert math.isfinite(error().value(View([0.0, 1.0, 1.0, 0.5], [0, 1, 0, 1])))
    # All right and sure: the nearest neighbors say the same, and nothing is off.
    certain = View([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1])
    assert error().value(certain) == pytest.approx(0.0, abs=1e-20)
    assert not error()(View([0.2, 0.4], [0, 1])).notes


def test_the_floor_is_a_setting() -> None:
    # At 0 the densities around .3 and .9 are floor^(.3/b) and floor^(.9/b) times constants: the higher the floor, the
    # more the far one, which came true, counts.
    view = View([0.0, 0.3, 0.9], [0, 0, 1])
    assert error(bandwidth=1.0, min_prob=1e-3).value(view) > error(bandwidth=1.0).value(view) + 1e-3
    for min_prob in (0.0, -1.0, 0.5, "tiny", True):
        with refused("TO203", repr(min_prob), fix="1e-12"):
            error(min_prob=min_prob)


@pytest.mark.parametrize("make", [rows, scores])
@pytest.mark.parametrize("n", [50, 1100])
@pytest.mark.parametrize("order", [1.0, 2.0])
def test_draws_are_values_with_other_labels_or_weights(make: Any, n: int, order: float) -> None:
    # Beyond 1,000 rows draws are summed in single precision: n eps = 1100 · 6e-8 at worst.
    close = {"rtol": 1e-11 if n == 50 else 7e-5}
    view, rng = make(n), np.random.default_rng(1)
    estimator = error(order)
    linear = estimator.cell_statistic(view)
    w = view.w if view.y.ndim == 1 else view.w[:, None]
    y = np.stack([rng.permutation(view.y) for _ in range(3)])
    values = linear.statistic(view.w[None], (w * view.p)[None], w * y)
    assert np.allclose(values, [estimator.value(view.with_y(one)) for one in y], **close)
    # A resample is a weighting; the copies of a row are left out of its estimate with it.
    drawn = np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(3)]) * view.w
    wide = drawn if view.y.ndim == 1 else drawn[..., None]
    values = linear.statistic(drawn, wide * view.p, wide * view.y)
    expected = [estimator.value(View(view.p, view.y, one, classes=view.classes)) for one in drawn]
    assert np.allclose(values, expected, **close)


def test_a_draw_without_near_rows_is_still_a_number() -> None:
    # With a narrow kernel only the equal row tells anything; drawn without it the far rows do, evenly.
    view = View([0.1, 0.1, 0.9, 0.9], [0, 1, 0, 1])
    linear = error(bandwidth=1e-5).cell_statistic(view)
    w = np.array([[1.0, 0.0, 2.0, 1.0]])
    values = linear.statistic(w, w * view.p, w * view.y)
    # Row 0 is estimated by rows 2 and 3: ⅓; row 2 by row 3: 1; row 3 by row 2: 0
    assert float(values[0]) == pytest.approx(((1 / 3 - 0.1) + 2 * 0.1 + 0.9) / 4, rel=1e-12)


def test_one_row_has_no_neighbor() -> None:
    for view in (View([0.7], [1.0]), View([[0.2, 0.3, 0.5]], [[0.0, 0.0, 1.0]]), View([0.7, 0.2], [1, 0], [1, 0])):
        estimate = DirichletError()(view)
        assert math.isnan(estimate.value)
        assert [note.code for note in estimate.notes] == ["TN118", "TN155"]
        assert estimate.to_dict()["value"] is None


@pytest.mark.slow
def test_of_many_rows_a_sample_that_does_not_depend_on_their_order_is_compared() -> None:
    rng = np.random.default_rng(0)
    p = rng.integers(1, 1000, 5200) / 1000  # ties
    y = (rng.random(5200) < p).astype(float)
    w = rng.integers(0, 3, 5200).astype(float)
    order = rng.permutation(5200)
    estimator, view = error(), View(p, y, w)
    small = View(p[:5000], y[:5000])
    assert not estimator.notes(small)
    assert not estimator.cell_statistic(view).n_sampled  # rows of weight 0 are none
    view = View(p, y, w + 1)
    assert estimator.value(view) == pytest.approx(estimator.value(View(p[order], y[order], (w + 1)[order])), rel=1e-12)
    assert [note.code for note in estimator.notes(view)] == ["TN119"]
    own = estimator.resample_units((view,), 3, np.random.default_rng(0))
    assert own is not None
    assert own[0].shape == (1, 3)
    assert own[1] == "sampled rows"
    linear = estimator.cell_statistic(view)
    assert linear.size == 5001
    assert (np.bincount(linear.index) == [*[1] * 5000, 200]).all()


def test_a_calibrated_model_scores_what_its_noise_floor_says() -> None:
    # The value is then one more draw of the null: above its 90 % quantile in Binomial(25, .1) cases, at most 9 in
    # 99.99 %, and the mean of all values is within four standard errors of the mean of all draws.
    above, gaps = 0, []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet([1, 1, 1], 60)
        y = (P.cumsum(axis=1) > rng.random((60, 1))).argmax(axis=1)
        view = View(P, np.eye(3)[y])
        linear = error().cell_statistic(view)
        u = rng.random((99, 60, 1))
        drawn = np.eye(3)[(P.cumsum(axis=1) > u).argmax(axis=2)]
        null = linear.statistic(view.w[None], P[None], drawn)
        above += linear.value() > np.quantile(null, 0.9)
        gaps.append((linear.value() - null.mean()) / null.std())
    assert above <= 9
    assert abs(np.mean(gaps)) < 4 / math.sqrt(25)


@pytest.mark.slow
def test_the_whole_answer() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 150)
    some = Predictions((P.cumsum(axis=1) > rng.random((150, 1))).argmax(axis=1), P)
    for order in (1, 2):
        estimate = to.measure(some, "dirichlet_kde", order=order, resamples=100)
        assert estimate.lens == "canonical"
        assert estimate.settings["interval"] == "noise-floor"
        assert estimate.settings["order"] == order
        assert estimate.settings["bandwidth"] in BANDWIDTHS
        assert estimate.interval is not None
        assert estimate.noise_floor is not None
        assert estimate.interval.low <= estimate.value <= estimate.interval.high
        if estimate.debiased is not None:
            root = 2 / order  # the floor of a power is subtracted at the level of squares
            expected = max(0.0, estimate.value**root - estimate.noise_floor**root) ** (1 / root)
            assert estimate.debiased == pytest.approx(expected, rel=1e-12)
    shares = to.measure(some, "dirichlet_kde", lens="classwise", resamples=50)
    assert len(shares.parts) == 3


def test_meaningless_settings_are_refused() -> None:
    for order in (0.5, math.inf, "two", True):
        with refused("TO203", repr(order), fix="order"):
            DirichletError(order=order)  # type: ignore[arg-type]
    for bandwidth in (0, -0.1, "median", True, math.inf):
        with refused("TO203", repr(bandwidth), fix="auto"):
            DirichletError(bandwidth=bandwidth)
    cells = View([0.2, 0.4], [0, 1]).pool(np.array([0, 0]), 1)
    with refused("TO205", fix="rows"):
        DirichletError().value(cells)


def test_a_row_with_nearly_all_the_weight_leaks_no_warning():
    # The weight of the other rows, 1e20 + 2 − 1e20, is 0 in double precision.
    P = np.array([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
    bandwidth = likeliest_bandwidth(P, np.array([1e20, 1.0, 1.0]), 1e-12)
    assert bandwidth in BANDWIDTHS
