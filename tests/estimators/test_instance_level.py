"""Are ICE and MacroCE the authors' numbers, on rows and on cells, with draws that agree with whole views?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.binning.uniform import Uniform
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.instance_level import InstanceError, MacroError
from trueodds.kernels import random_labels
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.intervals.percentile import jackknife
from trueodds.resampling.null_distribution import null_draws

BOTH = pytest.mark.parametrize("error", [InstanceError(), MacroError(), MacroError("zero")], ids=str)


class ViewByView(MacroError):
    """MacroCE that hides its groups, so that every draw is evaluated from a whole view."""

    def cell_statistic(self, view: View) -> Any:
        return None


def calibrated(n: int, seed: int = 0, decimals: int | None = None) -> Predictions:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    p = p if decimals is None else p.round(decimals)
    return Predictions((rng.random(n) < p).astype(int), p)


# By hand


def test_two_right_and_two_wrong_by_hand() -> None:
    # right: 1 − .9, 1 − .7, mean .2; wrong: .8, .4, mean .6. MacroCE (.2 + .6)/2; ICE (.1 + .3 + .8 + .4)/4 = .4
    view = View([0.9, 0.7, 0.8, 0.4], [1, 1, 0, 0])
    assert float(MacroError()(view)) == pytest.approx(0.4, rel=1e-14)
    assert float(InstanceError()(view)) == pytest.approx(0.4, rel=1e-14)
    assert dict(MacroError()(view).parts) == pytest.approx({"ice": 0.4, "ice_pos": 0.2, "ice_neg": 0.6})


def test_wrong_rows_are_half_of_macroce_however_few() -> None:
    # 99 right at .9 and one wrong at .9: ICE (99·.1 + .9)/100 = .108, MacroCE (.1 + .9)/2 = .5
    view = View([0.9] * 100, [1] * 99 + [0])
    assert float(InstanceError()(view)) == pytest.approx(0.108, rel=1e-13)
    assert float(MacroError()(view)) == pytest.approx(0.5, rel=1e-13)


def test_one_probability_for_all_gives_one_half_whatever_comes() -> None:
    # (1 − c + c)/2: no discrimination, and the calibration of c does not matter
    for c in (0.1, 0.5, 0.93):
        assert float(MacroError()(View([c] * 7, [1, 0, 0, 1, 0, 0, 0]))) == pytest.approx(0.5, rel=1e-14)


def test_a_vote_of_seven_tenths_is_two_rows_by_weight() -> None:
    shares = View([0.9, 0.3], [0.7, 0.2], [1, 2])
    rows = View([0.9, 0.9, 0.3, 0.3], [1, 0, 1, 0], [0.7, 0.3, 0.4, 1.6])
    for error in (InstanceError(), MacroError()):
        assert error.value(shares) == pytest.approx(error.value(rows), rel=1e-14)
        assert error.parts(shares) == pytest.approx(error.parts(rows), rel=1e-14)


# Reference numbers: shared golden estimators (the authors' code gives them times 100)


@pytest.mark.reference
@pytest.mark.parametrize("key", ["ice", "ice_pos", "ice_neg", "macroce"])
def test_a_reference_number(key: str) -> None:
    table = reference.frame("estimators/b_multi1000.csv")
    (view,) = as_lens("confidence").views(Predictions(table["y"], reference.columns(table)))
    values = {"macroce": MacroError().value(view), **MacroError().parts(view)}
    assert values[key] == pytest.approx(reference.estimators()[f"b.{key}"]["value"], rel=1e-10)
    assert InstanceError().value(view) == values["ice"]


# An empty side


@pytest.mark.parametrize(("outcome", "absent"), [(1, "ice_neg"), (0, "ice_pos")])
def test_an_empty_side_is_no_number_and_never_zero_in_silence(outcome: int, absent: str) -> None:
    view = View([0.9, 0.7], [outcome, outcome])
    answer = MacroError()(view)
    assert np.isnan(float(answer))
    assert np.isnan(answer.parts[absent])
    note, undefined = answer.notes
    assert (note.code, undefined.code) == ("TN130", "TN155")
    assert absent in note.text
    assert answer.to_dict()["value"] is None
    ice = InstanceError()(view)
    assert np.isfinite(float(ice))
    assert [note.code for note in ice.notes] == ["TN130"]


def test_an_empty_side_counts_as_zero_on_request() -> None:
    # As the authors' code: right rows alone, (.2 + 0)/2
    answer = MacroError("zero")(View([0.9, 0.7], [1, 1]))
    assert float(answer) == pytest.approx(0.1, rel=1e-14)
    assert "counts as 0" in answer.notes[0].text
    assert answer.settings == {"empty": "zero"}


def test_classes_that_never_occurred_share_one_note() -> None:
    P = np.random.default_rng(0).dirichlet(np.ones(5), 20)
    answer = to.measure(Predictions([0, 1] * 10, P), "macroce", lens="classwise", resamples=20)
    assert np.isnan(answer.value)
    (note,) = (note for note in answer.notes if note.code == "TN130")
    assert "3 of 5 classes (class:2, class:3, class:4)" in note.text
    zero = to.measure(Predictions([0, 1] * 10, P), "macroce", lens="classwise", resamples=20, empty="zero")
    assert np.isfinite(zero.value)
    assert "counts as 0" in next(note.text for note in zero.notes if note.code == "TN130")


def test_a_wrong_row_of_tiny_weight_is_a_row() -> None:
    assert float(MacroError()(View([0.9, 0.6], [1, 0], [1, 1e-15]))) == pytest.approx(0.35, rel=1e-14)


def test_an_undefined_value_still_has_a_noise_floor_and_says_why_there_is_no_interval() -> None:
    # Four rows at .9: a right model errs in none of them two times in three; those draws take ice_neg .9
    answer = to.measure(Predictions.from_confidence([0.9] * 4, [1] * 4), "macroce")
    assert np.isnan(answer.value)
    assert answer.interval is None
    assert answer.noise_floor == pytest.approx(0.5, rel=1e-12)
    assert {"TN130", "TN201"} <= {note.code for note in answer.notes}


def test_certain_predictions_leave_no_noise_floor_and_say_so() -> None:
    answer = to.measure(Predictions.from_confidence([1.0, 1.0, 1.0], [1, 1, 0]), "macroce")
    assert answer.value == 0.5
    assert np.isnan(answer.noise_floor)
    assert answer.to_dict()["noise_floor"] is None
    assert "no noise floor" in next(note.text for note in answer.notes if note.code == "TN130")
    assert to.measure(Predictions.from_confidence([1.0] * 3, [1, 1, 0]), "macroce", empty="zero").noise_floor == 0.0


# Cells


@BOTH
def test_cells_of_any_width_give_the_number_of_the_rows(error: InstanceError) -> None:
    rng = np.random.default_rng(3)
    p, w = rng.random(200), rng.random(200) * 3
    view = View(p, (rng.random(200) < p**2).astype(float), w)
    for k in (1, 4, 64):
        grid = Uniform(k).fit(view)
        cells = view.pool(grid.index(view.partition_values), grid.size)
        assert error.value(cells) == pytest.approx(error.value(view), rel=1e-12)
        assert error.parts(cells) == pytest.approx(error.parts(view), rel=1e-12)
        assert Estimand(error, as_lens("positive"), (cells,)).values[0] == pytest.approx(error.value(view), rel=1e-12)


@pytest.mark.parametrize("name", ["ice", "macroce"])
def test_a_tally_gives_the_value_the_floor_and_the_interval_of_the_rows(name: str) -> None:
    preds = calibrated(3000, 5, decimals=2)
    exact, tallied = to.measure(preds, name, lens="positive"), to.measure(to.tally(preds), name, lens="positive")
    assert tallied.value == pytest.approx(exact.value, rel=1e-12)
    assert tallied.interval is not None
    assert exact.interval is not None
    # two means of 999 draws; the draws' spread is about that of the resamples, a quarter of the interval's width
    std = (exact.interval.high - exact.interval.low) / 4
    assert tallied.noise_floor == pytest.approx(exact.noise_floor, abs=4.5 * std * np.sqrt(2 / 999))
    # each end is a quantile of 2,000 resamples: standard error below .07 of their spread, and the bca shift
    assert tallied.interval.low == pytest.approx(exact.interval.low, abs=0.4 * std)
    assert tallied.interval.high == pytest.approx(exact.interval.high, abs=0.4 * std)


# Chance


def test_the_mean_of_a_calibrated_model_is_known() -> None:
    # p uniform: E 2p(1−p) = 1/3; and E[p(1−p)]/E[p] = (1/6)/(1/2) = 1/3 on either side. Given how many rows are right
    # each side is a mean of independent rows, so both are unbiased at any n; 4.5 standard errors of 1,000 data sets.
    rng = np.random.default_rng(21)
    values = []
    for _ in range(1000):
        p = rng.random(40)
        view = View(p, (rng.random(40) < p).astype(float))
        values.append((InstanceError().value(view), MacroError().value(view)))
    for column in np.transpose(values):
        assert column.mean() == pytest.approx(1 / 3, abs=4.5 * column.std() / 1000**0.5)


def test_the_noise_floor_of_ice_is_the_mean_of_twice_the_variance() -> None:
    preds = calibrated(300, 7)
    draws = null_draws(
        preds, [Estimand.from_predictions(InstanceError(), as_lens("positive"), preds)], 999, np.random.default_rng(0)
    )[0]
    assert draws.mean() == pytest.approx((2 * preds.p * (1 - preds.p)).mean(), abs=4.5 * draws.std() / 999**0.5)


@pytest.mark.parametrize("lens", ["positive", "confidence", "classwise"])
def test_draws_by_groups_equal_whole_views_draw_by_draw(lens: str) -> None:
    preds = calibrated(200, 1, decimals=2)
    views = [
        null_draws(preds, [Estimand.from_predictions(error, as_lens(lens), preds)], 30, np.random.default_rng(3))[0]
        for error in (MacroError(), ViewByView())
    ]
    np.testing.assert_allclose(views[0], views[1], rtol=1e-10)


def test_groups_of_many_scores_keep_the_mean_of_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_labels, "MIN_ROWS_OF_SHORT_INTEGERS", 10**6)  # the same labels are drawn for both
    # 66,000 scores in 256 groups. Within a group the scores spread over 1/256, so a draw is off by a sum of n terms
    # of size (1/256)/√12 each with a mean of 0: below 4.5 · (1/256)/√12 / √n, of the same size for each side.
    n = 66_000
    preds = calibrated(n, 2)
    estimands = [Estimand.from_predictions(error, as_lens("positive"), preds) for error in (MacroError(), ViewByView())]
    assert estimands[0].cell_statistics is not None
    assert estimands[0].cell_statistics[0].size == 256
    grouped, ungrouped = (null_draws(preds, [estimand], 10, np.random.default_rng(3))[0] for estimand in estimands)
    np.testing.assert_allclose(grouped, ungrouped, rtol=0, atol=4.5 / 256 / 12**0.5 / n**0.5)
    assert estimands[0].values[0] == estimands[1].values[0]


@BOTH
def test_the_jackknife_equals_leaving_rows_out(error: InstanceError) -> None:
    preds = calibrated(40, 4)
    estimand = Estimand.from_predictions(error, as_lens("positive"), preds)
    (view,) = estimand.views
    expected = [error.value(view.take(np.delete(np.arange(40), i))) for i in range(40)]
    np.testing.assert_allclose(jackknife(preds, estimand)[0], expected, rtol=1e-9)


@pytest.mark.slow
def test_the_interval_covers_the_truth() -> None:
    # p uniform and the outcome comes with p²: (1/3 − 1/4)/(1/3) = 1/4 where it came, (1/2 − 1/4)/(2/3) = 3/8 where not,
    # MacroCE 5/16. 200 intervals of 95 % promise at least 93 %: below 178 hits has probability < .1 %.
    rng, hits = np.random.default_rng(8), 0
    for _ in range(200):
        p = rng.random(200)
        preds = Predictions((rng.random(200) < p**2).astype(int), p)
        interval = to.measure(preds, "macroce", lens="positive", resamples=200, rng=rng).interval
        assert interval is not None
        assert interval.method == "bca"
        hits += interval.low <= 5 / 16 <= interval.high
    assert hits >= 178


def test_a_mean_is_not_debiased_by_its_floor() -> None:
    # A calibrated model does not score 0, so √(e² − floor²) would be no error of anything
    assert to.measure(calibrated(200), "macroce").debiased is None


# Settings and data at the edge


def test_the_lens_is_confidence_if_none_is_named() -> None:
    preds = calibrated(50)
    assert to.measure(preds, "macroce", interval=None).lens == "confidence"
    assert to.measure(preds, "ice", interval=None).lens == "confidence"


@pytest.mark.parametrize("empty", ["none", 0, None])
def test_what_an_empty_side_counts_as_is_one_of_two_words(empty: Any) -> None:
    with refused("TO203", fix="nan"):
        ESTIMATORS.make("macroce", {"empty": empty})


@pytest.mark.parametrize(
    ("p", "y"),
    [([0.3], [1]), ([0.0, 1.0], [0, 1]), ([1.0, 0.0], [0, 1]), ([0.5] * 6, [1, 0, 1, 0, 0, 1]), ([0.0] * 3, [0, 0, 1])],
)
def test_edge_data_give_a_number_or_a_note(p: list[float], y: list[int]) -> None:
    for name in ("ice", "macroce"):
        for lens in ("positive", "confidence", "classwise"):
            answer = to.measure(Predictions(y, p), name, lens=lens, resamples=50)
            assert np.isfinite(answer.value) or {"TN130", "TN201"} & {note.code for note in answer.notes}


def test_votes_have_an_interval_and_a_floor_from_flipped_residuals() -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet([2, 1, 1], 100)
    answer = to.measure(Predictions(rng.multinomial(10, P), P), "macroce", resamples=100)
    assert answer.interval is not None
    assert answer.noise_floor is not None
    assert 0 < answer.noise_floor < 1
