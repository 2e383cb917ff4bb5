"""Is CORP's miscalibration the published number, refitted to every draw, and finite where it should be?"""

from __future__ import annotations

import csv
from functools import cache

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import trueodds as to
from tests import reference
from trueodds import InputError, Predictions
from trueodds.estimators.corp import Corp
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

BOTH = ("brier", "log_loss")


@cache
def golden_view(key: str) -> View:
    """The reference input of a golden key: c, c2 with ties, or the confidence of b."""
    file = {"c": "c_binary500", "c2": "c2_binary500_ties", "b_conf": "b_multi1000"}[key]
    table = reference.frame(f"estimators/{file}.csv")
    preds = Predictions(table["y"], table["p"] if "p" in table else reference.columns(table))
    (view,) = as_lens("confidence" if key == "b_conf" else "positive").views(preds)
    return view


@cache
def r_view(name: str) -> View:
    """The input of a fit by reliabilitydiag."""
    if name.startswith(("precip", "hockey")):
        file = "precip_Niamey_2016" if name.startswith("precip") else "hockey"
        with reference.path(f"golden/anchors/{file}.csv").open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        prob_column, outcome_column = name.split("_", 1)[1], "obs" if file.startswith("precip") else "y"
        return View([float(row[prob_column]) for row in rows], [float(row[outcome_column]) for row in rows])
    table = reference.frame(f"anchors/{'' if name == 'foreclosure' else 'synthetic/'}{name}.csv")
    return View(table["x" if name == "foreclosure" else "p"], table["y"])


def some(n: int = 60, seed: int = 0, ties: bool = True) -> View:
    """Rows with ties, weights among them zeros, and both exact ends."""
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 11, n) / 10 if ties else rng.random(n)
    y = (rng.random(n) < p).astype(float)  # what was said to be impossible never comes
    return View(p, y, rng.integers(0, 4, n).astype(float))


# By hand


def test_two_violators_by_hand() -> None:
    # .2 came, .4 did not, .8 came: isotonic rates 1/2, 1/2, 1.
    # Brier: S(p) = (.64 + .16 + .04)/3 = .28, S(r) = (.25 + .25 + 0)/3 = 1/6, UNC = 2/3·1/3 = 2/9.
    parts = Corp().parts(View([0.4, 0.8, 0.2], [0, 1, 1]))
    assert parts == pytest.approx({"mcb": 0.28 - 1 / 6, "dsc": 2 / 9 - 1 / 6, "unc": 2 / 9, "score": 0.28}, rel=1e-14)
    # Log loss: S(p) = −(log .2 + log .6 + log .8)/3, S(r) = 2/3 log 2, UNC = −(2/3 log 2/3 + 1/3 log 1/3).
    score, recalibrated = -np.log(0.2 * 0.6 * 0.8) / 3, np.log(2) * 2 / 3
    unc = np.log(3) - 2 / 3 * np.log(2)
    parts = Corp("log_loss").parts(View([0.4, 0.8, 0.2], [0, 1, 1]))
    expected = {"mcb": score - recalibrated, "dsc": unc - recalibrated, "unc": unc, "score": score}
    assert parts == pytest.approx(expected, rel=1e-13)


def test_tied_scores_are_pooled_before_the_fit_in_whatever_order_they_come() -> None:
    # reliabilitydiag rounds .11 .12 .31 .32 to .1 .1 .3 .3 after sorting, splits the ties and gives .225. Pooled,
    # both rates are 1/2: S(p) = (.01 + .81 + .09 + .49)/4 = .35, less .25.
    for y in ([0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 1, 0]):
        assert Corp().value(View([0.1, 0.1, 0.3, 0.3], y)) == pytest.approx(0.1, rel=1e-14)


# By reference


@pytest.mark.reference
@pytest.mark.parametrize(("key", "score"), [("c", "brier"), ("c", "log"), ("c2", "brier"), ("b_conf", "brier")])
def test_the_parts_are_the_reference_numbers(key: str, score: str) -> None:
    expected = reference.estimators()[f"{key}.corp_{score}"]["value"]
    view = golden_view(key)
    corp = Corp("log_loss" if score == "log" else score)
    for part, number in corp.parts(view).items():
        assert number == pytest.approx(expected[part], rel=1e-10), part
    assert corp.value(view) == corp.parts(view)["mcb"]
    s = np.unique(view.p, return_inverse=True)[1]
    fit = isotonic_means(np.bincount(s, view.w), np.bincount(s, view.w * view.y))
    assert len(np.unique(fit)) == expected["n_blocks"]


@pytest.mark.reference
@pytest.mark.parametrize(
    "name",
    [
        "precip_Logistic",
        "precip_EMOS",
        "precip_ENS",
        "precip_EPC",
        "hockey_x",
        "hockey_rand",
        "g2_300",
        "g2_300_ties",
        "foreclosure",
    ],
)
def test_reliabilitydiag_gives_the_same_decomposition(name: str) -> None:
    # R 4.2.2, reliabilitydiag 0.2.1.9000, summary() with the Brier and the log score.
    expected = reference.golden("anchors/golden.json")["r_packages"]["corp"][name]
    for ours, key in (("brier", "brier"), ("log_loss", "log")):
        parts = Corp(ours).parts(r_view(name))
        for part, number in (("score", "mean_score"), ("mcb", "MCB"), ("dsc", "DSC"), ("unc", "UNC")):
            stored = expected[key][number]
            assert parts[part] == pytest.approx(np.inf if stored is None else stored, rel=1e-10), (ours, part)


# What must hold


@pytest.mark.parametrize("score", BOTH)
def test_the_parts_add_up_to_the_score_and_none_is_negative(score: str) -> None:
    for seed in range(30):
        parts = Corp(score).parts(some(seed=seed, ties=seed % 2 == 0))
        assert parts["score"] == pytest.approx(parts["mcb"] - parts["dsc"] + parts["unc"], abs=1e-14)
        assert min(parts["mcb"], parts["dsc"], parts["unc"]) >= 0


@pytest.mark.parametrize("score", BOTH)
def test_a_recalibrated_model_has_no_miscalibration_and_the_same_discrimination(score: str) -> None:
    view = some(200, ties=False)
    s = np.unique(view.p, return_inverse=True)[1]
    fit = isotonic_means(np.bincount(s, view.w), np.bincount(s, view.w * view.y))
    before, after = Corp(score).parts(view), Corp(score).parts(View(fit[s], view.y, view.w))
    assert after["mcb"] == pytest.approx(0, abs=1e-14)
    assert after["dsc"] == pytest.approx(before["dsc"], rel=1e-12)


@pytest.mark.parametrize("score", BOTH)
def test_every_draw_is_refitted(score: str) -> None:
    rng = np.random.default_rng(3)
    for view in (some(40), some(40, ties=False)):
        linear = Corp(score).cell_statistic(view)
        y = (rng.random((25, len(view.p))) < view.p).astype(float)
        w, wp = (np.bincount(linear.index, x, linear.size) for x in (view.w, view.w * view.p))
        wy = np.stack([np.bincount(linear.index, view.w * one, linear.size) for one in y])
        expected = [Corp(score).value(view.with_y(one)) for one in y]
        assert linear.statistic(w[None], wp[None], wy) == pytest.approx(expected, rel=1e-12, abs=1e-15)
        rows = rng.integers(0, len(view.p), (25, len(view.p)))  # resamples leave scores without weight
        w, wp, wy = (
            np.stack([np.bincount(linear.index[r], x[r], linear.size) for r in rows])
            for x in (view.w, view.w * view.p, view.w * view.y)
        )
        expected = [Corp(score).value(view.take(r)) for r in rows]
        assert linear.statistic(w, wp, wy) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_one_score_has_the_miscalibration_of_a_mean() -> None:
    # With one score MCB is (ȳ − p)², whose mean is p(1−p)/n = .0021 and whose variance is at most 2(p(1−p)/n)² plus
    # an excess of order 1/n³; the mean of 20,000 draws stays within 4.5 standard errors.
    n, p, draws = 100, 0.3, 20_000
    linear = Corp().cell_statistic(View([p] * n, [0.0] * n))
    counts = np.random.default_rng(0).binomial(n, p, draws).astype(float)
    values = linear.statistic(np.full((1, 1), float(n)), np.full((1, 1), p * n), counts[:, None])
    variance = p * (1 - p) / n
    assert values.mean() == pytest.approx(variance, abs=4.5 * variance * np.sqrt(2.1 / draws))


def test_the_noise_floor_shrinks_with_the_two_thirds_power_of_n() -> None:
    # Isotonic regression's squared error is of order n^(−2/3), so eight times the rows quarter the floor, short of
    # what the two ends add (4 % here by 4,000 draws). One draw has a relative sd of .17 and .12, the ratio of two means
    # of 200 one of .015: 4 of them and the 4 % make 10 %.
    rng = np.random.default_rng(1)
    floors = []
    for n in (500, 4000):
        p = rng.random(n)
        linear = Corp().cell_statistic(View(p, np.zeros(n)))
        wy = np.zeros((200, n))
        wy[:, linear.index] = rng.random((200, n)) < p
        floors.append(linear.statistic(np.ones((1, n)), np.sort(p)[None], wy).mean())
    assert floors[0] / floors[1] == pytest.approx(4, rel=0.1)


# Edges


def test_an_impossible_outcome_makes_the_log_score_infinite_and_says_so() -> None:
    estimate = Corp("log_loss")(View([0.0, 0.2, 1.0, 0.9], [1, 0, 1, 1]))
    assert estimate.value == np.inf
    assert estimate.parts["mcb"] == estimate.parts["score"] == np.inf
    assert np.isfinite([estimate.parts["dsc"], estimate.parts["unc"]]).all()
    assert [note.code for note in estimate.notes] == ["TN124"]
    assert estimate.to_dict()["value"] is None
    measured = to.measure(Predictions([1, 0, 1, 1], [0.0, 0.2, 1.0, 0.9]), "corp", score="log_loss", resamples=20)
    assert measured.interval is None
    assert not Corp()(View([0.0, 0.2], [1, 0])).notes


@pytest.mark.parametrize("score", BOTH)
def test_certainty_that_is_right_costs_nothing(score: str) -> None:
    assert Corp(score).value(View([0.0, 1.0, 0.0], [0, 1, 0])) == 0
    assert Corp(score).value(View([0.0, 1.0, 0.5], [0, 1, 0])) < np.inf


def test_rounded_sums_of_weights_are_no_impossible_outcomes() -> None:
    # .1 + .2 + .3 and .3 + .2 + .1 are different floats: at the score 1 Σw − Σwy is then 1e-16, not 0, and its product
    # with log 0 would make the noise floor infinite. The other score said .5: its log loss is log 2, and 1/1.6 of all.
    linear = Corp("log_loss").cell_statistic(View([1.0, 1.0, 1.0, 0.5], [1, 1, 1, 1], [0.1, 0.2, 0.3, 1.0]))
    w, wy = np.array([[1.0, 0.1 + 0.2 + 0.3]]), np.array([[1.0, 0.3 + 0.2 + 0.1]])
    assert (w != wy).any()
    values = linear.statistic(w, w * [0.5, 1.0], wy)
    assert values == pytest.approx([np.log(2) / 1.6], rel=1e-12)


def test_a_vector_per_row_is_refused_and_classwise_is_advised() -> None:
    preds = Predictions([0, 1, 2], np.eye(3) * 0.7 + 0.1)
    with pytest.raises(InputError, match="TO205") as refusal:
        to.measure(preds, "corp", lens="canonical", interval=None)
    assert "classwise" in refusal.value.fix
    assert to.measure(preds, "corp", lens="classwise", interval=None).value == pytest.approx((0.01 * 2 + 0.04) / 3)


def test_a_full_answer_carries_interval_floor_and_parts() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(6000)
    preds = Predictions((rng.random(6000) < p**2).astype(int), p)  # 6,000 scores, more than draws tell apart
    estimate = to.measure(preds, "corp", resamples=200)
    # The truth is the mean of (p − p²)² over uniform p, 1/3 − 1/2 + 1/5 = 1/30.
    assert estimate.interval is not None
    assert estimate.interval.method == "floor-bounds"
    assert estimate.interval.low < 1 / 30 < estimate.interval.high
    assert estimate.noise_floor is not None
    assert 0 < estimate.noise_floor < 0.1 * estimate.value
    assert set(estimate.parts) == {"mcb", "dsc", "unc", "score"}
    assert estimate.settings["score"] == "brier"


# The fit


def test_the_fit_is_isotonic_regression_for_all_draws_at_once() -> None:
    rng = np.random.default_rng(7)
    w, y = rng.random((3, 1, 30)) + 0.1, rng.integers(0, 3, (3, 4, 30)) / 2
    fit = isotonic_means(w, w * y)
    for a in range(3):
        for b in range(4):
            expected = isotonic_regression(y[a, b], weights=w[a, 0]).x
            assert fit[a, b] == pytest.approx(expected, rel=1e-12, abs=1e-14)
    one = isotonic_means(w[0], w[0] * y[0])
    assert (one == fit[0]).all()
    assert isotonic_means(w[0, 0], w[0, 0] * y[0, 0]).shape == (30,)


def test_cells_without_weight_take_no_part_and_show_a_neighbor() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        w = rng.integers(0, 2, 12) * rng.random(12)
        w[rng.integers(12)] = 1.0
        y = rng.random(12)
        fit = isotonic_means(w, w * y)
        assert fit[w > 0] == pytest.approx(isotonic_regression(y[w > 0], weights=w[w > 0]).x, rel=1e-12)
        occupied = np.flatnonzero(w > 0)
        lower = occupied[np.maximum(np.searchsorted(occupied, np.arange(12), "right") - 1, 0)]
        assert (fit == fit[lower]).all()
    assert np.isnan(isotonic_means(np.zeros(3), np.zeros(3))).all()
