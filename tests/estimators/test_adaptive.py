"""Are SCE, ACE, TACE and the average error what their names say, and not each other?"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from tests.estimators.values_by_view import measure_views
from trueodds import Predictions
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.adaptive import AdaptiveError, ThresholdedError
from trueodds.estimators.base import Estimator
from trueodds.estimators.binned import AverageError, BinnedError, MaxError, StaticError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

ALL = (StaticError(), AdaptiveError(), ThresholdedError(), AverageError())


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


@cache
def preds(name: str) -> Predictions:
    """A reference input: four classes (b), two classes (c)."""
    table = reference.frame(f"estimators/{'b_multi1000' if name == 'b' else 'c_binary500'}.csv")
    return Predictions(table["y"], table["p"] if "p" in table else reference.columns(table))


def evaluate(estimator: Estimator, name: str, lens: str) -> float:
    return measure_views(estimator, as_lens(lens).views(preds(name)))[0]


# By hand


def test_ranges_count_alike_by_hand() -> None:
    # Two ranges: .1 .2 .3 (none came, gap .2) and .8 .9 (one of two came, gap .35). ACE (.2 + .35)/2 = .275, while
    # ECE on them is 3/5 · .2 + 2/5 · .35 = .26.
    view = View([0.1, 0.2, 0.3, 0.8, 0.9], [0, 0, 0, 1, 0])
    assert AdaptiveError(EqualMass(2)).value(view) == pytest.approx(0.275, rel=1e-14)
    assert BinnedError(EqualMass(2)).value(view) == pytest.approx(0.26, rel=1e-14)
    assert AverageError(Uniform(2)).value(view) == pytest.approx(0.275, rel=1e-14)
    assert AverageError(Uniform(2))(view).parts == pytest.approx({"over": 0.275, "under": 0.0})


def test_kept_scores_by_hand() -> None:
    # Kept are .3 (weight 1, none came) and .6 (weight 2, came): one range, said 1.5/3, seen 2/3, gap 1/6.
    view = View([0.01, 0.3, 0.6], [1, 0, 1], [3, 1, 2])
    one = ThresholdedError(EqualMass(1))
    assert one.value(view) == pytest.approx(1 / 6, rel=1e-14)
    assert ThresholdedError(EqualMass(1), normalize="all").value(view) == pytest.approx(1 / 12, rel=1e-14)
    assert one.parts(view) == {"kept": 0.5}
    assert ThresholdedError(EqualMass(3)).value(view) == pytest.approx((0.3 + 2 * 0.4) / 3, rel=1e-14)


def test_the_threshold_itself_is_left_out() -> None:
    view = View([0.25, 0.5], [1, 1])
    assert ThresholdedError(EqualMass(1), threshold=0.25).value(view) == 0.5
    assert ThresholdedError(EqualMass(1), threshold=0.2).value(view) == 0.625


def test_one_k_th_is_the_threshold_of_the_problem_behind_the_lens() -> None:
    views = as_lens("classwise").views(Predictions([0, 1], [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1]]))
    third = [ThresholdedError(EqualMass(1), "1/K").value(view) for view in views]
    assert third == pytest.approx([0.3, 0.4, 0.0])
    with refused("TO205", "1/K"):
        ThresholdedError(threshold="1/K").value(View([0.5], [1], classes=0))


# Reference numbers


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "name", "lens", "estimator"),
    [
        ("b.sce_google.ew15_left", "b", "classwise", StaticError(Uniform(15, "left"))),
        ("b.sce_google.ew15_left", "b", "classwise", StaticError()),  # no score lies on an edge
        ("b.classwise_ece.ew15", "b", "classwise", StaticError()),
        ("b.classwise_ece.em15_mid", "b", "classwise", StaticError(EqualMass(15))),
        ("b.tace_em15mid_normN.eps0.01", "b", "classwise", ThresholdedError(normalize="all")),
        ("b.tace_em15mid_normN.eps0.05", "b", "classwise", ThresholdedError(threshold=0.05, normalize="all")),
        ("b.classwise_ece_threshold_1_over_K.ew15", "b", "classwise", ThresholdedError(Uniform(15), "1/K")),
        ("c.ace_netcal_unweighted.ew15", "c", "positive", AverageError()),
    ],
    ids=lambda param: param if isinstance(param, str) else "",
)
def test_a_reference_number(key: str, name: str, lens: str, estimator: Estimator) -> None:
    assert evaluate(estimator, name, lens) == pytest.approx(golden()[key]["value"], rel=1e-10)


@pytest.mark.reference
def test_the_paper_s_average_over_ranges_cut_by_rank() -> None:
    # The reference puts rank r into range floor(r · 15 / 1000); given those cuts, the number is the paper's formula.
    values = []
    for view in as_lens("classwise").views(preds("b")):
        s, last = np.sort(view.p), -(-np.arange(1, 15) * 1000 // 15)
        edges = (0.0, *((s[last - 1] + s[last]) / 2).tolist(), 1.0)
        values.append(AdaptiveError(FixedEdges(edges)).value(view))
    assert np.mean(values) == pytest.approx(golden()["b.ace_nixon_equalweight_rank.R15"]["value"], rel=1e-10)


def of_the_authors_code(view: View, ranges: int, threshold: float) -> float:
    """What the docstrings say of it: range r starts at the kept score of rank round(rn/R), closed on the left."""
    mask = view.p > threshold
    p, y = view.p[mask], view.y[mask]
    starts = np.sort(p)[[round(r * len(p) / ranges) for r in range(ranges)]]
    place = np.digitize(p, starts)
    return float(sum(abs((p - y)[place == r].sum()) for r in range(1, ranges + 1)) / len(p))


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "threshold"),
    [("b.ace_google.B15", -1.0), ("b.tace_google.B15.eps0.01", 0.01), ("b.tace_google.B15.eps0.05", 0.05)],
)
def test_the_authors_code_differs_as_the_docstring_says(key: str, threshold: float) -> None:
    views = as_lens("classwise").views(preds("b"))
    published = golden()[key]["value"]
    assert np.mean([of_the_authors_code(view, 15, threshold) for view in views]) == pytest.approx(published, rel=1e-10)
    ours = evaluate(ThresholdedError(threshold=threshold) if threshold > 0 else AdaptiveError(), "b", "classwise")
    assert 1e-5 < abs(ours - published) < 1e-3


# Faults of peers


def test_ace_is_not_the_average_error() -> None:
    # netcal: "ACE" means the unweighted mean over uniform bins
    view = View([0.01, 0.02, 0.03, 0.9], [0, 0, 1, 1])
    assert AdaptiveError(EqualMass(2)).value(view) != pytest.approx(AverageError(Uniform(2)).value(view), rel=0.1)
    assert (AdaptiveError.name, AverageError.name) == ("ace", "average_ce")


def test_fifteen_bins_are_fifteen() -> None:
    # dirichletcal's class-wise ECE digitizes on 15 edges, which are 14 bins
    p = (np.arange(15) + 0.5) / 15
    assert StaticError()(View(p, p)).settings["occupied_bins"] == 15


def test_an_empty_bin_is_absent_and_never_a_gap_of_zero() -> None:
    assert AverageError(Uniform(1000)).value(View([0.25], [1])) == 0.75


@pytest.mark.parametrize("estimator", ALL, ids=lambda param: param.name)
def test_ties_do_not_depend_on_the_order_of_rows(estimator: Estimator) -> None:
    # torch-uncertainty: adaptive ECE from .05 to .37 by the order within ties
    rng = np.random.default_rng(3)
    p, y = rng.integers(1, 5, 200) / 5, rng.integers(0, 2, 200)
    values = {round(estimator.value(View(p[o], y[o])), 13) for o in (rng.permutation(200) for _ in range(20))}
    assert len(values) == 1


@pytest.mark.parametrize("estimator", ALL, ids=lambda param: param.name)
def test_fewer_rows_than_bins_give_the_mean_distance(estimator: Estimator) -> None:
    # torch-uncertainty: NaN. Each row is a bin of its own: (.2 + .7)/2.
    assert estimator.value(View([0.2, 0.3], [0, 1])) == pytest.approx(0.45, rel=1e-14)


def test_an_absent_class_counts() -> None:
    # probmetrics: absent classes dropped
    estimate = to.measure(Predictions([0, 1], [[0.6, 0.1, 0.3], [0.2, 0.5, 0.3]]), "sce", interval=None)
    assert estimate.parts["class:2"] == pytest.approx(0.3)
    assert estimate.value == pytest.approx((0.3 + 0.3 + 0.3) / 3)


# Laws of their own


def test_a_threshold_of_nothing_is_the_error_over_equal_mass() -> None:
    rng = np.random.default_rng(4)
    view = View(rng.uniform(0.1, 1, 500), rng.integers(0, 2, 500), rng.integers(0, 3, 500))
    for normalize in ("kept", "all"):
        assert ThresholdedError(normalize=normalize).value(view) == pytest.approx(
            BinnedError(EqualMass(15)).value(view), rel=1e-12
        )


def test_the_average_lies_between_none_and_the_worst() -> None:
    rng = np.random.default_rng(5)
    view = View(rng.random(300), rng.integers(0, 2, 300))
    assert 0 < AverageError(order=1).value(view) < AverageError(order=2).value(view) < MaxError().value(view)
    assert AverageError(order=np.inf).value(view) == MaxError().value(view)


def absolute_sum(p: Array) -> float:
    """E|Σ(y − p)| for independent y, exactly: the law of the count by convolution."""
    pmf = np.ones(1)
    for prob in p:
        pmf = np.convolve(pmf, [1 - prob, prob])
    return float(pmf @ np.abs(np.arange(len(pmf)) - p.sum()))


@pytest.mark.parametrize("name", ["ace", "average_ce", "tace"])
def test_the_noise_floor_is_the_exact_mean_of_a_calibrated_model(name: str) -> None:
    # Each bin adds c E|Σ(y − p)|, a Poisson-binomial moment, with c = 1/(R n_b), or 1/kept for tace. As the variance
    # of |X| is at most that of X, the floor's standard error is at most sqrt(Σ c² Σ p(1 − p) / 999); 4.5 of them
    # leave one failure in 1e5 (and the seed is fixed).
    rng = np.random.default_rng(6)
    p = np.sort(rng.beta(0.5, 0.5, 400))
    selected = p[p > 0.01] if name == "tace" else p
    index = (Uniform(8) if name == "average_ce" else EqualMass(8)).fit(View(selected, selected)).index(selected)
    bins = [selected[index == b] for b in range(8)]
    share = [1 / len(selected) if name == "tace" else 1 / (8 * len(scores)) for scores in bins]
    exact = sum(c * absolute_sum(scores) for c, scores in zip(share, bins, strict=True))
    error = sum(c**2 * (scores * (1 - scores)).sum() for c, scores in zip(share, bins, strict=True)) / 999
    estimate = to.measure(Predictions(rng.random(400) < p, p), name, bins=8, lens="positive", resamples=50)
    assert estimate.noise_floor == pytest.approx(exact, abs=4.5 * error**0.5)
    assert 4.5 * error**0.5 < exact / 10  # narrow enough to tell


def test_draws_see_the_same_statistic_as_the_value() -> None:
    rng = np.random.default_rng(7)
    view = View(rng.random(80) ** 3, rng.integers(0, 2, 80), rng.integers(0, 4, 80))
    for estimator in (*ALL, ThresholdedError(normalize="all")):
        one = estimator.cell_statistic(view)
        assert one is not None
        w, wp, wy = (np.bincount(one.index, x, one.size) for x in (view.w, view.w * view.p, view.w * view.y))
        assert one.statistic(w[None], wp[None], wy[None])[0] == pytest.approx(estimator.value(view), rel=1e-12)
        other = rng.integers(0, 2, (3, 80))  # draws of labels, each a view of its own
        drawn = np.stack([np.bincount(one.index, view.w * y, one.size) for y in other])
        assert one.statistic(w[None], wp[None], drawn) == pytest.approx(
            [estimator.value(view.with_y(y)) for y in other], rel=1e-12
        )
        norms = one.centered_norms(w, wp, wy, (w[None], wp[None], drawn))
        assert norms is not None
        assert (np.abs(one.statistic(w[None], wp[None], drawn) - estimator.value(view)) <= norms + 1e-12).all()


def test_a_weight_of_two_is_two_rows_and_zero_is_none() -> None:
    rng = np.random.default_rng(8)
    p, y, w = rng.integers(0, 41, 60) / 40, rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    for estimator in ALL:
        rows = View(np.repeat(p, w), np.repeat(y, w))
        assert estimator.value(View(p, y, w)) == pytest.approx(estimator.value(rows), rel=1e-12)


# The façade


def test_bins_alone_are_equal_mass_and_classwise_is_the_lens() -> None:
    assert ESTIMATORS.make("ace", {}) == AdaptiveError(EqualMass(15))
    assert ESTIMATORS.make("ace", {"bins": 10}) == AdaptiveError(EqualMass(10))
    assert ESTIMATORS.make("ace", {"partition": "uniform", "bins": 5}) == AdaptiveError(Uniform(5))
    assert ESTIMATORS.make("ace", {"bins": [0, 0.5, 1]}) == AdaptiveError(FixedEdges((0, 0.5, 1)))
    assert ESTIMATORS.make("tace", {"bins": 7, "threshold": 0.1}) == ThresholdedError(EqualMass(7), 0.1)
    assert ESTIMATORS.make("average_ce", {"bins": 7}) == AverageError(Uniform(7))
    rng = np.random.default_rng(9)
    P = rng.dirichlet([1, 1, 1], 90)
    data = Predictions(rng.integers(0, 3, 90), P)
    for name in ("sce", "ace", "tace"):
        assert to.measure(data, name, interval=None).lens == "classwise"
    assert to.measure(data, "average_ce", interval=None).lens == "confidence"
    estimate = to.measure(data, "tace", resamples=50)
    assert estimate.interval is not None
    assert estimate.interval.low <= estimate.value <= estimate.interval.high
    assert (estimate.settings["threshold"], estimate.settings["normalize"]) == (0.01, "kept")


def test_a_class_without_a_kept_score_adds_nothing_and_is_named() -> None:
    view = View([0.001, 0.002], [0, 1], name="class:7")
    answer = ThresholdedError()(view)
    assert answer.value == 0
    assert [note.code for note in answer.notes] == ["TN111"]
    assert "class:7" in answer.notes[0].text
    P = np.array([[0.995, 0.005, 0.0], [0.992, 0.008, 0.0]] * 20)
    estimate = to.measure(Predictions([0, 0] * 20, P), "tace", resamples=50)
    assert estimate.value == pytest.approx((0.0065 + 0 + 0) / 3)
    (note,) = [note for note in estimate.notes if note.code == "TN111"]
    assert "2 of 3 classes" in note.text


@pytest.mark.parametrize("partition", ["uniform", "equal-mass", "mass:2", "sweep", "distinct", "median-variance"])
def test_a_class_without_a_kept_score_adds_nothing_in_any_partition(partition: str) -> None:
    preds = Predictions([0, 1, 0, 1], [[0.8, 0.2, 0.0], [0.3, 0.7, 0.0], [0.6, 0.4, 0.0], [0.1, 0.9, 0.0]])
    estimate = to.measure(preds, "tace", lens="classwise", partition=partition, interval=None)
    assert estimate.parts["class:2"] == 0


def test_a_tally_gives_the_average_error_of_its_rows() -> None:
    rng = np.random.default_rng(10)
    data = Predictions(rng.integers(0, 2, 500), rng.random(500))
    exact = to.measure(data, "average_ce", resamples=50)
    tallied = to.measure(to.tally(data), "average_ce", resamples=50)
    assert tallied.value == pytest.approx(exact.value, rel=1e-12)
    assert tallied.interval is not None
    for name in ("ace", "tace"):
        a, b = (to.measure(x, name, lens="positive", interval=None).value for x in (data, to.tally(data)))
        assert b == pytest.approx(a, abs=2 / 3840 + 0.02)  # ranges end on cells: a row or two change sides


def test_what_has_no_meaning_together_is_refused() -> None:
    joint = View([[0.5, 0.3, 0.2]], [[1, 0, 0]])
    for estimator in (AdaptiveError(), ThresholdedError()):
        with refused("TO205"):
            estimator.value(joint)
    with refused("TO202"):
        ESTIMATORS.make("ace", {"bins": 5, "range": "1/K"})


def test_ranges_that_the_labels_choose_have_no_draws_on_fixed_bins() -> None:
    for estimator_type in (AdaptiveError, ThresholdedError, AverageError):
        assert estimator_type(Sweep()).cell_statistic(View([0.1, 0.9], [0, 1])) is None
