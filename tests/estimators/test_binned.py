"""Are ECE, MCE and RMSCE the published numbers, by every lens, partition and distance?"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from tests.estimators.values_by_view import measure_views
from trueodds import InputError, Predictions
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import aggregation_weights
from trueodds.estimators.binned import BinnedError, MaxError, RootMeanSquareError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


@cache
def preds(name: str) -> Predictions:
    """A reference input: four classes (b), two classes (c, c2 with ties), three classes of nine rows (a2)."""
    file = {
        "a2": "a2_blog9",
        "b": "b_multi1000",
        "b2": "b2_multi1000_modelB",
        "c": "c_binary500",
        "c2": "c2_binary500_ties",
    }
    table = reference.frame(f"estimators/{file[name]}.csv")
    return Predictions(table["y"], table["p"] if "p" in table else reference.columns(table))


def value(name: str, lens: str, estimator: BinnedError) -> float:
    (view,) = as_lens(lens).views(preds(name))
    return float(estimator(view))


# By hand


def test_two_bins_by_hand() -> None:
    # Bin (.8, 1] holds .9 (came) and .85 (did not): gap .875 − .5 = .375, weight 2/3. Bin (0, .2] holds .1 (did not
    # come): gap .1, weight 1/3. ECE (.75 + .1)/3 = .85/3, MCE .375, RMSCE sqrt((2·.140625 + .01)/3).
    view = View([0.9, 0.85, 0.1], [1, 0, 0])
    assert float(BinnedError(Uniform(5))(view)) == pytest.approx(0.85 / 3, rel=1e-14)
    assert float(MaxError(Uniform(5))(view)) == pytest.approx(0.375, rel=1e-14)
    assert float(RootMeanSquareError(Uniform(5))(view)) == pytest.approx((0.29125 / 3) ** 0.5, rel=1e-14)


def test_weights_by_hand() -> None:
    # One bin: said (3·.9 + 1·.5)/4 = .8, seen 3/4.
    assert float(BinnedError(Uniform(1))(View([0.9, 0.5], [1, 0], [3, 1]))) == pytest.approx(0.05, abs=1e-15)
    assert float(BinnedError(Uniform(1))(View([0.9, 0.5], [1, 0], [0.3, 0.1]))) == pytest.approx(0.05, abs=1e-15)


def test_empty_bins_are_absent() -> None:
    for estimator in (BinnedError(Uniform(1000)), MaxError(Uniform(1000)), RootMeanSquareError(Uniform(1000))):
        assert float(estimator(View([0.25], [1]))) == 0.75


def test_the_nine_rows_of_the_blog() -> None:
    # Pavlovic (2025) works this by hand; .104444… is its .10445 without the rounding of .86667.
    assert value("a2", "confidence", BinnedError(Uniform(5))) == pytest.approx(0.94 / 9, rel=1e-12)


# Reference numbers: shared golden estimators (plain loops; most checked against the authors' own code, crosscheck.json)

U10, U15 = Uniform(10), Uniform(15)
TABLE: list[tuple[str, str, str, BinnedError]] = [
    ("a2.confidence_ece.ew5.right", "a2", "confidence", BinnedError(Uniform(5))),
    ("a2.confidence_mce.ew5.right", "a2", "confidence", MaxError(Uniform(5))),
    ("a2.confidence_ece.ew5.left", "a2", "confidence", BinnedError(Uniform(5, "left"))),
    ("a2.confidence_mce.ew5.left", "a2", "confidence", MaxError(Uniform(5, "left"))),
    ("a2.confidence_ece.ew10.right", "a2", "confidence", BinnedError(U10)),
    ("a2.confidence_mce.ew10.right", "a2", "confidence", MaxError(U10)),
    ("a2.confidence_rmsce.ew5.right", "a2", "confidence", RootMeanSquareError(Uniform(5))),
    ("b.canonical_ew5_allaxes.tv", "b", "canonical", BinnedError(SimplexGrid(5))),
    ("b.canonical_ew5_allaxes.tv", "b", "canonical", BinnedError(Uniform(5))),
    ("b.canonical_ew5_allaxes.sq_euclid", "b", "canonical", BinnedError(SimplexGrid(5), "sq-euclidean")),
    ("b.partition01_23_ew15.tv", "b", "groups:[[0,1],[2,3]]", BinnedError(U15)),
    ("b.confidence_ece.ew10", "b", "confidence", BinnedError(U10)),
    ("b.confidence_mce.ew10", "b", "confidence", MaxError(U10)),
    ("b.confidence_rmsce.ew10", "b", "confidence", RootMeanSquareError(U10)),
    ("b.confidence_ece.ew15", "b", "confidence", BinnedError()),
    ("b.confidence_mce.ew15", "b", "confidence", MaxError()),
    ("b.confidence_rmsce.ew15", "b", "confidence", RootMeanSquareError()),
    ("b.confidence_ece.em15_mid", "b", "confidence", BinnedError(EqualMass(15))),
    ("b.confidence_rmsce.em15_mid", "b", "confidence", RootMeanSquareError(EqualMass(15))),
    ("b.confidence_mce.em15_mid", "b", "confidence", MaxError(EqualMass(15))),
    ("b.confidence_ece.ew_sqrt_n", "b", "confidence", BinnedError(Uniform("sqrt"))),
    ("b.confidence_ece_sweep.em.l1", "b", "confidence", BinnedError(Sweep())),
    ("b.confidence_ece_sweep.ew.l1", "b", "confidence", BinnedError(Sweep("uniform"))),
    ("b.confidence_ece_sweep.em.l2", "b", "confidence", RootMeanSquareError(Sweep())),
    ("b.confidence_ece_sweep.ew.l2", "b", "confidence", RootMeanSquareError(Sweep("uniform"))),
    ("c.ece_sweep.em.l2", "c", "positive", RootMeanSquareError(Sweep())),
    ("c.ece.ew10", "c", "positive", BinnedError(U10)),
    ("c.ece.ew15", "c", "positive", BinnedError(U15)),
    ("c.mce.ew15", "c", "positive", MaxError(U15)),
    ("c.rmsce.ew15", "c", "positive", RootMeanSquareError(U15)),
    ("c.ece.ew_sqrt_n", "c", "positive", BinnedError(Uniform("sqrt"))),
    ("c2.ece.ew10.right", "c2", "positive", BinnedError(U10)),
    ("c2.mce.ew10.right", "c2", "positive", MaxError(U10)),
    ("c2.ece.em10_mid_ties_together", "c2", "positive", BinnedError(EqualMass(10))),
    ("c2.ece.unique_values", "c2", "positive", BinnedError(FixedEdges((0, *((np.arange(20) + 0.5) / 20).tolist(), 1)))),
]


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "lens", "estimator"), TABLE, ids=lambda param: param if isinstance(param, str) else ""
)
def test_a_reference_number(key: str, name: str, lens: str, estimator: BinnedError) -> None:
    assert value(name, lens, estimator) == pytest.approx(golden()[key]["value"], rel=1e-10)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "distance"),
    [("tv", "tv"), ("l1", "l1"), ("sq_euclid", "sq-euclidean"), ("l2", "l2"), ("max", "max"), ("kl_acc_to_conf", "kl")],
)
def test_a_binary_view_is_a_vector_of_two_for_a_distance(key: str, distance: str) -> None:
    truth = golden()["b.confidence_lens_two_vector_distances.ew15"]["value"][key]
    assert value("b", "confidence", BinnedError(U15, distance)) == pytest.approx(truth, rel=1e-10)


@pytest.mark.reference
def test_the_left_closed_number_with_edges_i_over_k() -> None:
    # The reference has .0869 because linspace misplaces .3 and .6; with i/k it is .0905 (README of the numbers).
    assert value("c2", "positive", BinnedError(Uniform(10, "left"))) == pytest.approx(0.0905, rel=1e-10)


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "estimator"),
    [
        ("b.classwise_ece.ew15", BinnedError()),
        ("b.sce_google.ew15_left", BinnedError(Uniform(15, "left"))),
        ("b.classwise_ece.em15_mid", BinnedError(EqualMass(15))),
    ],
)
def test_a_classwise_reference_number(key: str, estimator: BinnedError) -> None:
    total, parts = measure_views(estimator, as_lens("classwise").views(preds("b")))
    assert total == pytest.approx(golden()[key]["value"], rel=1e-10)
    assert list(parts) == [f"class:{c}" for c in range(4)]
    for part, truth in zip(parts.values(), golden()[key].get("per_class", ()), strict=False):
        assert part == pytest.approx(truth, rel=1e-10)


@pytest.mark.reference
def test_the_classwise_root_mean_square_of_the_reference_has_one_root_over_all_classes() -> None:
    _, parts = measure_views(RootMeanSquareError(), as_lens("classwise").views(preds("b")))
    overall = np.mean(np.square(list(parts.values()))) ** 0.5
    assert overall == pytest.approx(golden()["b.marginal_l2_mean.ew15"]["value"], rel=1e-10)


# Peers' faults


def test_a_million_calibrated_float32_rows_sum_without_drift() -> None:
    # torchmetrics, as above, in float32: a running float32 sum stops growing
    n = 2_000_000
    p = np.full(n, 0.3, np.float32)
    y = np.zeros(n)
    y[: 3 * n // 10] = 1
    # float32(.3) is .3 + 1.2e-8
    assert float(BinnedError()(as_lens("positive").views(Predictions(y, p))[0])) == pytest.approx(1.19e-8, rel=0.01)


def test_confidence_zero_is_in_the_sum_and_in_n() -> None:
    # The Guo et al. code drops it from the sum, calzone-tool altogether: 0.0 where .5 is true
    answer = BinnedError(U10)(as_lens("positive").views(Predictions([0, 1], [0.0, 0.0]))[0])
    assert (float(answer), answer.n) == (0.5, 2)


def test_an_absent_class_counts_in_the_mean_over_classes() -> None:
    # probmetrics: absent classes dropped and rows renormalized
    P = np.array([[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]])
    _, parts = measure_views(BinnedError(), as_lens("classwise").views(Predictions([0, 1], P)))
    assert parts["class:2"] == pytest.approx(0.3)


def test_top_label_error_is_weighted_by_rows() -> None:
    # mapie: the bins' gaps are averaged unweighted, .40 for .008
    p, y = np.r_[np.full(99, 0.99), 0.5], np.r_[np.ones(98), 0, 0]
    assert float(BinnedError()(View(p, y))) == pytest.approx((abs(99 * 0.99 - 98) + 0.5) / 100, rel=1e-12)


# Settings


def test_order_two_is_never_below_order_one_nor_above_the_worst() -> None:
    view = as_lens("positive").views(Predictions(np.arange(90) % 3 == 0, np.linspace(0, 1, 90)))[0]
    values = [float(BinnedError(U10, order=q)(view)) for q in (1, 2, 5, np.inf)]
    assert values == sorted(values)
    assert float(RootMeanSquareError(U10)(view)) == values[1]
    assert float(MaxError(U10)(view)) == values[3]


@pytest.mark.parametrize("order", [100.0, 1e4, 1e300, 10**300])
def test_a_high_order_comes_to_the_worst_bin_and_never_to_0(order: float) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(200)
    preds = Predictions((rng.random(200) < p**2).astype(int), p)
    for name in ("ece", "sweep"):
        high, worst = (to.measure(preds, name, order=q, interval=None).value for q in (order, math.inf))
        # (Σ share gap^q)^(1/q) lies between share^(1/q) of the worst gap and the worst gap; its bin has a row or more.
        assert worst * 200 ** (-1 / order) * (1 - 1e-12) <= high <= worst * (1 + 1e-12)


def test_rows_that_share_one_bin_are_noted() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(120)
    y = rng.random(120) < p
    notes = [
        [note.code for note in to.measure(Predictions(y, x), "rmsce", partition="mass:100").notes]
        for x in (p, p * 0 + 0.5)
    ]
    assert ["TN109" in codes for codes in notes] == [True, False]  # equal predictions have no second bin to go to
    assert "TN109" not in [note.code for note in to.measure(Predictions(y, p), "rmsce", partition="mass:50").notes]
    assert "TN109" in [note.code for note in to.measure(Predictions(y, p), "debiased_l2", bins=1).notes]


def test_min_count_leaves_small_bins_out_of_the_search_for_the_worst() -> None:
    view = View([0.05] * 10 + [0.95], [0] * 9 + [1] + [0])
    assert float(MaxError(U10)(view)) == pytest.approx(0.95)
    assert float(MaxError(U10, min_count=2)(view)) == pytest.approx(0.05)


def test_no_bin_large_enough_is_no_number_and_never_zero() -> None:
    answer = MaxError(U10, min_count=50)(View([0.05, 0.95], [1, 0]))
    assert np.isnan(float(answer))
    assert "TN107" in [note.code for note in answer.notes]
    assert answer.to_dict()["value"] is None


def test_kl_of_a_bin_with_an_impossible_outcome_is_infinite() -> None:
    assert float(BinnedError(U10, "kl")(View([0.0, 0.5], [1, 1]))) == np.inf
    assert np.isfinite(float(BinnedError(U10, "kl")(View([0.5, 1.0], [1, 1]))))


def test_an_own_distance_measures() -> None:
    view = as_lens("canonical").views(Predictions([0, 2], [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]))[0]
    own = BinnedError(MedianVariance(1), lambda predicted, observed: float(abs(predicted - observed).sum() / 2))
    assert float(own(view)) == pytest.approx(float(BinnedError(MedianVariance(1))(view)), rel=1e-14)


def test_settings_are_read_back_from_what_ran() -> None:
    view = View([0.9, 0.8], [1, 0])
    assert BinnedError()(view).settings == {
        "partition": "uniform 15", "distance": "tv", "order": 1.0, "occupied_bins": 2, "smallest_bin": 1,
    }  # fmt: skip
    settings = MaxError(EqualMass(2), "lp", min_count=1)(view).settings
    assert (settings["partition"], settings["distance"], settings["order"], settings["min_count"]) == (
        "equal-mass 2",
        "max",
        "inf",
        1,
    )
    joint = View([[0.9, 0.1, 0.0]] * 30, [[1, 0, 0]] * 30)
    assert BinnedError()(joint).settings["partition"] == "median-variance 16"
    of_four = View([[0.9, 0.1, 0.0, 0.0]] * 30, [[1, 0, 0, 0]] * 30)
    assert BinnedError()(of_four).settings["partition"] == "predicted-class"


def test_bins_of_few_rows_are_noted() -> None:
    assert [note.code for note in BinnedError()(View([0.9, 0.8], [1, 0])).notes] == ["TN105"]
    assert BinnedError()(View([0.9] * 10, [1] * 10)).notes == ()


def test_the_registry_makes_estimators_from_words() -> None:
    assert ESTIMATORS.make("ece", {}) == BinnedError()
    assert ESTIMATORS.make("ece", {"bins": 10}) == BinnedError(Uniform(10))
    assert ESTIMATORS.make("mce", {"partition": "equal-mass", "bins": 10, "min_count": 5}) == MaxError(
        EqualMass(10), min_count=5
    )
    assert ESTIMATORS.make("rmsce", {"bins": [0, 0.5, 1], "distance": "l1"}) == RootMeanSquareError(
        FixedEdges((0, 0.5, 1)), "l1"
    )
    assert ESTIMATORS.make("ece", {"partition": Sweep()}) == BinnedError(Sweep())


@pytest.mark.parametrize(
    ("name", "settings", "code", "fix"),
    [
        ("ecee", {}, "TO201", "ece"),
        ("ece", {"bin": 10}, "TO202", "bins"),
        ("ece", {"distnace": "tv"}, "TO202", "distance"),
        ("brier", {"bins": 10}, "TO202", ""),
        ("log_loss", {"flor": 0}, "TO202", "min_prob"),
    ],
)
def test_unknown_names_are_refused_with_the_near_ones(name: str, settings: dict[str, Any], code: str, fix: str) -> None:
    with refused(code, fix=fix):
        ESTIMATORS.make(name, settings)


# Several views


def test_aggregates_by_hand() -> None:
    p = Predictions([0, 2, 1], [[0.5, 0.2, 0.3], [0.1, 0.3, 0.6], [0.4, 0.2, 0.4]], weight=[2, 1, 1])
    views = as_lens("classwise").views(p)
    one = BinnedError(Uniform(1))
    # said: (1.0+.1+.4)/4 = .375, (.4+.3+.2)/4 = .225, (.6+.6+.4)/4 = .4; seen 2/4, 1/4, 1/4
    gaps = [0.125, 0.025, 0.15]
    assert list(measure_views(one, views)[1].values()) == pytest.approx(gaps)
    assert measure_views(one, views, "mean")[0] == pytest.approx(0.1)
    assert measure_views(one, views, "sum")[0] == pytest.approx(0.3)
    assert measure_views(one, views, "max")[0] == pytest.approx(0.15)
    assert measure_views(one, views, "prevalence")[0] == pytest.approx(0.5 * 0.125 + 0.25 * 0.025 + 0.25 * 0.15)


def test_an_unknown_aggregate_is_refused_even_for_one_view() -> None:
    with refused("TO203", "'median'"):
        aggregation_weights([View([0.5], [1])], "median")


def test_prevalence_without_any_positive_is_no_number_and_never_zero() -> None:
    views = as_lens("classwise").views(Predictions.from_multilabel([[0, 0]], [[0.5, 0.6]]))
    assert np.isnan(measure_views(BinnedError(), views, "prevalence")[0])


# Chance


def absolute_sum(p: Array) -> float:
    """E|Σ(y − p)| for independent y, exactly: the law of the count by convolution."""
    pmf = np.ones(1)
    for prob in p:
        pmf = np.convolve(pmf, [1 - prob, prob])
    return float(pmf @ np.abs(np.arange(len(pmf)) - p.sum()))


def test_the_mean_error_of_a_calibrated_model_is_its_exact_noise_floor() -> None:
    # Given p, E[ECE] = Σ_b E|Σ_b (y − p)| / n, a sum of Poisson-binomial moments. The mean of 300 draws has the
    # standard error sd/√300; 4.5 of them leave one failure in 1e5 (and the seed is fixed).
    rng = np.random.default_rng(11)
    n, k, draws = 400, 10, 300
    p = 1 / (1 + np.exp(-1.5 * rng.normal(size=n)))
    index = Uniform(k).fit(View(p, p)).index(p)
    noise_floor = sum(absolute_sum(p[index == b]) for b in range(k)) / n
    values = [BinnedError(Uniform(k)).value(View(p, (rng.random(n) < p).astype(float))) for _ in range(draws)]
    assert np.mean(values) == pytest.approx(noise_floor, abs=4.5 * np.std(values) / draws**0.5)
    # and the rule of thumb of the docstring, .3 sqrt(k/n) = .047, is of the right size
    assert 0.5 < noise_floor / (0.3 * (k / n) ** 0.5) < 1.5


def test_a_known_error_is_found_and_overstated_at_small_n() -> None:
    # Truth: said p at four points, comes at p + .1, so the error is .1 in every bin. At n = 2e5 the mean of 20 draws
    # is within 4.5 standard errors plus the bias, which is 0 up to exp(-n δ²/2) when no gap changes sign.
    rng = np.random.default_rng(12)

    def draw(n: int) -> float:
        p = rng.choice([0.15, 0.35, 0.55, 0.75], n)
        return BinnedError(Uniform(10)).value(View(p, (rng.random(n) < p + 0.1).astype(float)))

    large = [draw(200_000) for _ in range(20)]
    assert np.mean(large) == pytest.approx(0.1, abs=4.5 * np.std(large) / 20**0.5)
    small = [draw(20) for _ in range(400)]
    assert np.mean(small) > 0.1 + 4.5 * np.std(small) / 400**0.5


def test_refusals_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize(
    ("more", "text"), [([0.9], "1 of 2 occupied bins contains"), ([0.9, 0.5], "2 of 3 occupied bins")]
)
def test_bins_of_few_rows_are_noted_with_what_to_compare(more, text):
    p = [0.1] * 10 + more
    (note,) = BinnedError(Uniform(15))(View(p, [0] * len(p))).notes
    assert note.code == "TN105"
    assert note.text.startswith(text)
    assert note.text.endswith("fewer than 10 rows, which biases the error upward; compare it with the noise floor.")


def test_a_note_on_several_classes_counts_classes() -> None:
    P = np.random.default_rng(0).dirichlet([1] * 4, 60)
    preds = to.Predictions(P.argmax(axis=1), P)
    for lens, nouns in (("classwise", "classes, first in class:0: "), ("top-label", "predicted classes, first in p")):
        (note,) = (note for note in to.measure(preds, "ece", lens=lens, interval=None).notes if note.code == "TN105")
        assert note.text.startswith(f"In 4 of 4 {nouns}")
