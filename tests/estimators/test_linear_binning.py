"""Is a score shared between its two bins as the paper means it, and are the published numbers those of its code?"""

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
from trueodds.binning.uniform import Uniform
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.linear_binning import LinearBinError, LinearWeights
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


@cache
def golden() -> dict[str, Any]:
    return reference.estimators()


@cache
def study() -> dict[str, Any]:
    golden: dict[str, Any] = reference.golden("posocco/golden.json")
    return golden


def shares(error: LinearBinError, score: float) -> list[float]:
    """How much of one score goes to each bin."""
    view = View([score], [1.0])
    parts = LinearWeights(error, error.edges(view), np.array([score]))
    out = np.zeros(parts.size + 1)
    out[parts.lower_bin[0]] += 1 - parts.upper_weight[0]
    out[parts.lower_bin[0] + 1] += parts.upper_weight[0]
    return out[: parts.size].tolist()


# By hand


def test_the_nearer_center_has_the_larger_weight() -> None:
    # estimating_eces: the two weights are swapped. Centers .25 and .75: .3 is 1/10 of the way up.
    assert shares(LinearBinError(2), 0.3) == pytest.approx([0.9, 0.1])
    assert shares(LinearBinError(2, weights="swapped"), 0.3) == pytest.approx([0.1, 0.9])
    for weights in ("linear", "swapped"):
        assert shares(LinearBinError(2, weights=weights), 0.1) == [1, 0]  # beyond the centers one bin has it all
        assert shares(LinearBinError(2, weights=weights), 0.9) == [0, 1]
    assert LinearBinError(2, weights="swapped")(View([0.3], [1])).notes[0].code == "TN113"


def test_a_score_on_a_center_is_in_its_bin() -> None:
    # estimating_eces: on the first center the whole weight goes to the LAST bin; with one bin it is dropped
    assert shares(LinearBinError(2), 0.25) == [1, 0]
    assert shares(LinearBinError(2), 0.75) == [0, 1]
    assert shares(LinearBinError(4), 0.375) == [0, 1, 0, 0]
    assert LinearBinError(1).value(View([0.5], [1])) == 0.5


def test_two_rows_by_hand() -> None:
    # Weights 3 and 1. Row .4 (came): residual .6 · 3 = 1.8, shared .7 and .3. Row .9 (did not): −.9 in the upper bin.
    # (|1.26| + |.54 − .9|)/4
    assert LinearBinError(2).value(View([0.4, 0.9], [1, 0], [3, 1])) == pytest.approx(1.62 / 4, rel=1e-12)


def test_equal_mass_edges_leave_the_rest_to_the_last_bin() -> None:
    # Seven rows in three bins: after two and four rows, midway; the last bin has three.
    p = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    error = LinearBinError(3, "equal-mass")
    assert error.edges(View(p, p)) == pytest.approx([0, 0.25, 0.45, 1])
    weighted = View([0.1, 0.3, 0.5, 0.7], [0, 0, 0, 0], [2, 2, 2, 1])
    assert error.edges(weighted) == pytest.approx([0, 0.2, 0.4, 1])
    assert error.edges(View(p, p, [0.5] * 7)) == pytest.approx([0, 0.25, 0.45, 1])
    # No multiples of one weight: cut evenly, at 4.3/3 within the third row and at 8.6/3 within the fifth.
    uneven = View(p, p, [0.7, 0.5, 0.7, 0.5, 0.7, 0.5, 0.7])
    assert error.edges(uneven) == pytest.approx([0, 0.3, 0.5, 1])


def test_centers_as_close_as_rounding_share_no_more_than_there_is() -> None:
    # Scores that agree up to rounding make centers that do: sums divided by their distance were noise of any size.
    # Every row's residual is shared out once, so the error is at most the mean of their sizes.
    rng = np.random.default_rng(9)
    p = np.concatenate([rng.random(50), 0.3 + 1e-16 * rng.integers(-3, 4, 400)])
    y = (rng.random(450) < p).astype(float)
    for bins in (10, 30):
        assert LinearBinError(bins, "equal-mass").value(View(p, y)) <= np.abs(y - p).mean()


def test_more_bins_than_rows_are_as_many_as_rows() -> None:
    # estimating_eces: every inner threshold becomes (max + min)/2, silently
    # Two bins with the edge .4 and centers .2, .7: of the residual .4 of row .6 four fifths go up: |−.2 + .08| + .32
    answer = LinearBinError(10, "equal-mass")(View([0.2, 0.6], [0, 1]))
    assert answer.settings["bins"] == 2
    assert answer.value == pytest.approx(0.44 / 2, rel=1e-12)


def test_bins_of_one_center_count_as_one() -> None:
    # Ties put edges 1 to 3 on .5: centers .25, .5, .5, .75, so one of the four is no bin of its own.
    view = View([0.5] * 8, [1, 0] * 4)
    assert LinearBinError(4, "equal-mass").value(view) == 0
    assert LinearBinError(4, "equal-mass").value(View([0.5] * 8, [1] * 8)) == pytest.approx(0.5, rel=1e-12)


# Reference numbers


@pytest.mark.reference
@pytest.mark.parametrize("weights", ["linear", "swapped"])
@pytest.mark.parametrize("base", ["uniform", "equal-mass"])
@pytest.mark.parametrize("data", ["b", "c"])
def test_a_reference_number(data: str, base: str, weights: str) -> None:
    table = reference.frame(f"estimators/{'b_multi1000' if data == 'b' else 'c_binary500'}.csv")
    preds = Predictions(table["y"], reference.columns(table) if data == "b" else table["p"])
    (view,) = as_lens("confidence" if data == "b" else "positive").views(preds)
    key = f"{'ece_c' if base == 'uniform' else 'ece_ac'}{'' if weights == 'linear' else '_officialweights'}"
    key += f".{'ew' if base == 'uniform' else 'em'}10"
    key = f"b.confidence_{key}.range1K" if data == "b" else f"c.{key}"
    error = LinearBinError(10, base, "1/K" if data == "b" else None, weights=weights)
    assert error.value(view) == pytest.approx(golden()[key]["value"], rel=1e-10)


NAMES = {
    "ece": ("uniform", "one-bin"), "ece_a": ("equal-mass", "one-bin"),
    "ece_c": ("uniform", "convex"), "ece_ac": ("equal-mass", "convex"),
}  # fmt: skip
SETS = ("A_bin40", "B_3c120", "C_5c500", "D_rf200", "E_4c30_missing", "F_bin2000_cal", "G_bin30_edges")
COUNTS = ("2", "5", "10", "15", "30", "sqrt")


def cases_of(name: str) -> tuple[dict[str, Any], tuple[View, ...], tuple[View, ...]]:
    table = reference.frame(f"posocco/data/{name}.csv")
    preds = Predictions(table["y"], reference.columns(table, "s"))
    return study()[name], as_lens("confidence").views(preds), as_lens("classwise").views(preds)


@pytest.mark.reference
@pytest.mark.parametrize("name", SETS)
def test_all_four_estimators_of_the_study_on_all_its_sets(name: str) -> None:
    # As the paper means them: linear weights, one range for all bins. Ties, exact 0 and 1, scores on edges and
    # centers, an absent class are all among the sets.
    truth, confidence, classes = cases_of(name)
    for estimator, (base, mapping) in NAMES.items():
        for count in COUNTS:
            key, bins = f"{estimator}[{count}]", count if count == "sqrt" else int(count)
            wide, narrow = (LinearBinError(bins, base, low, mapping, "left") for low in (None, "1/K"))
            one, many = truth["confidence"][key], truth["classwise"][key]
            assert narrow.value(confidence[0]) == pytest.approx(one["plain_paper"], rel=1e-10), key
            assert wide.value(confidence[0]) == pytest.approx(one["plain_paper_01"], rel=1e-10), key
            total, parts = measure_views(wide, classes)
            assert total == pytest.approx(many["plain_paper"], rel=1e-10), key
            assert list(parts.values()) == pytest.approx(many["per_class_paper"], rel=1e-10), key


@pytest.mark.reference
@pytest.mark.parametrize("name", ["A_bin40", "B_3c120", "C_5c500", "E_4c30_missing", "F_bin2000_cal"])
def test_swapped_weights_are_the_released_code(name: str) -> None:
    # The sets without scores on a first center, where that code has another slip.
    truth, confidence, classes = cases_of(name)
    for estimator in ("ece_c", "ece_ac"):
        for count in COUNTS:
            key, bins = f"{estimator}[{count}]", count if count == "sqrt" else int(count)
            error = LinearBinError(bins, NAMES[estimator][0], weights="swapped")
            assert measure_views(error, classes)[0] == pytest.approx(truth["classwise"][key]["reference"], rel=1e-10), (
                key
            )
            narrow = LinearBinError(bins, NAMES[estimator][0], "1/K", weights="swapped")
            assert narrow.value(confidence[0]) == pytest.approx(truth["confidence"][key]["reference"], rel=1e-10), key


# What it is for


def test_it_moves_smoothly_where_the_binned_error_jumps() -> None:
    # A score crosses the edge .5 by 2e-9. Its share moves by 2e-9/.1 and its residual of −.5 by 2e-9, in two bins: the
    # sums change by at most 2 · 2e-9 · (.5/.1 + 1) = 2.4e-8, a quarter of it over four rows.
    y = np.array([1, 0, 0, 1])
    below, above = (np.array([0.42, 0.5 + step, 0.55, 0.58]) for step in (-1e-9, 1e-9))
    smooth = LinearBinError(10)
    assert abs(smooth.value(View(below, y)) - smooth.value(View(above, y))) < 2e-8
    assert abs(BinnedError(Uniform(10)).value(View(below, y)) - BinnedError(Uniform(10)).value(View(above, y))) > 0.1


def test_a_shift_of_one_sign_is_found_whatever_the_bins() -> None:
    rng = np.random.default_rng(0)
    p, w = rng.uniform(0, 0.8, 300), rng.random(300)
    for error in (LinearBinError(3), LinearBinError(17), LinearBinError(8, "equal-mass"), LinearBinError("sqrt")):
        assert error.value(View(p, p + 0.13, w)) == pytest.approx(0.13, rel=1e-10)


@pytest.mark.parametrize("base", ["uniform", "equal-mass"])
def test_the_noise_floor_is_that_of_the_shared_sums_and_below_the_unshared(base: str) -> None:
    # Σ ω (y − p) of bin b is nearly normal with variance Σ ω² p(1 − p), so the floor is sqrt(2/π) Σ_b sd_b / n. The
    # mean of 999 draws: 4.5 standard errors, sd of a draw at most sqrt(Σ_b var_b)/n times the square root of 2 for
    # neighbors that share rows; the normal approximation of E|X| for 100 rows and more is good to 1 %.
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 2000)
    error = LinearBinError(8, base)
    parts = LinearWeights(error, error.edges(View(p, p)), p)
    omega = np.zeros((2000, parts.size + 1))
    omega[np.arange(2000), parts.lower_bin] = 1 - parts.upper_weight
    omega[np.arange(2000), parts.lower_bin + 1] += parts.upper_weight
    variance = (omega**2 * (p * (1 - p))[:, None]).sum(axis=0)
    noise_floor = (2 / np.pi) ** 0.5 * np.sqrt(variance).sum() / 2000
    settings: dict[str, Any] = {"bins": 8, "partition": base, "resamples": 50}
    preds = Predictions(rng.random(2000) < p, p)
    estimate = to.measure(preds, "ece_linear", **settings)
    standard_error = (2 * variance.sum()) ** 0.5 / 2000 / 999**0.5
    assert estimate.noise_floor == pytest.approx(noise_floor, rel=0.01, abs=4.5 * standard_error)
    assert estimate.noise_floor is not None
    binned = to.measure(preds, "ece", **settings)
    assert binned.noise_floor is not None
    assert estimate.noise_floor < binned.noise_floor


def test_auto_is_the_square_root_below_a_hundred_rows_and_ten_from_there_on() -> None:
    def count(n: int) -> int:
        return LinearBinError().n_bins(View(np.full(n, 0.5), np.zeros(n)))

    assert [count(n) for n in (1, 3, 30, 99, 100, 120, 5000)] == [1, 1, 5, 9, 10, 10, 10]
    assert LinearBinError().n_bins(View([0.5] * 2, [0, 1], [20, 16])) == 1  # two rows, however much they weigh
    assert LinearBinError("sqrt").n_bins(View(np.full(400, 0.5), np.zeros(400))) == 20
    assert LinearBinError()(View(np.full(40, 0.5), np.zeros(40))).settings["bins"] == 6


# Draws and cells


@pytest.mark.parametrize(
    "error",
    [
        LinearBinError(5),
        LinearBinError(5, "equal-mass"),
        LinearBinError(4, mapping="one-bin"),
        LinearBinError(3, weights="swapped"),
    ],
)
def test_draws_see_the_same_statistic_as_the_value(error: LinearBinError) -> None:
    rng = np.random.default_rng(2)
    view = View(rng.integers(0, 51, 90) / 50, rng.integers(0, 2, 90), rng.integers(0, 3, 90))
    one = error.cell_statistic(view)
    w, wp, wy = (np.bincount(one.index, x, one.size) for x in (view.w, view.w * view.p, view.w * view.y))
    assert one.value() == pytest.approx(one.statistic(w[None], wp[None], wy[None])[0], rel=1e-12)
    other = rng.integers(0, 2, (30, 90))
    drawn = np.stack([np.bincount(one.index, view.w * y, one.size) for y in other])
    values = one.statistic(w[None], wp[None], drawn)
    assert values == pytest.approx([error.value(view.with_y(y)) for y in other], rel=1e-10)
    norms = one.centered_norms(w[None], wp[None], wy[None], (w[None], wp[None], drawn))
    assert norms is not None
    assert (np.abs(values - one.value()) <= norms + 1e-12).all()  # a norm: the triangle inequality


def test_beyond_4096_scores_draws_are_nearly_and_the_value_exactly_right() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(20_000)
    view = View(p, rng.random(20_000) < p)
    one = LinearBinError().cell_statistic(view)
    w, wp, wy = (np.bincount(one.index, x, one.size) for x in (view.w, view.w * view.p, view.w * view.y))
    assert one.size <= 4096
    # Groups are 1/4096 of the rows, so a share is off by less than 10/4096 · 1.1; residuals of a group add at most 5.
    assert one.statistic(w[None], wp[None], wy[None])[0] == pytest.approx(one.value(), abs=1e-4)


def test_cells_that_no_center_divides_give_the_number_of_their_rows() -> None:
    rng = np.random.default_rng(4)
    data = Predictions(rng.integers(0, 2, 700), rng.random(700), weight=rng.integers(1, 4, 700))
    for settings in ({}, {"bins": 15}, {"bins": 6}, {"bins": 10, "mapping": "one-bin"}):
        exact, tallied = (to.measure(x, "ece_linear", interval=None, **settings).value for x in (data, to.tally(data)))
        assert tallied == pytest.approx(exact, rel=1e-9)
    for settings in ({"bins": 7}, {"partition": "equal-mass"}):  # a cell is 1/3840 wide
        exact, tallied = (to.measure(x, "ece_linear", interval=None, **settings).value for x in (data, to.tally(data)))
        assert tallied == pytest.approx(exact, abs=0.002)


def test_the_facade_gives_interval_floor_and_settings() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(500)
    estimate = to.measure(Predictions(rng.random(500) < p**2, p), "ece_linear", resamples=200)
    assert estimate.interval is not None
    assert estimate.interval.method == "residual-norm"
    assert estimate.interval.low < estimate.value < estimate.interval.high
    assert estimate.settings["partition"] == "uniform auto"
    assert (estimate.settings["bins"], estimate.settings["mapping"]) == (10, "convex")
    assert ESTIMATORS.make("ece_linear", {"bins": 5, "partition": "equal-mass", "range": "1/K"}) == LinearBinError(
        5, "equal-mass", "1/K"
    )
    narrow = LinearBinError(range="1/K", mapping="one-bin", closed="left").settings_used(View([0.6], [1]))
    assert (narrow["partition"], narrow["closed"]) == ("uniform auto on [1/K, 1]", "left")


# Edge data and faults of peers


def test_ties_do_not_depend_on_the_order_of_rows() -> None:
    # torch-uncertainty: adaptive bins split ties by the order of rows
    rng = np.random.default_rng(6)
    p, y = rng.integers(1, 5, 200) / 5, rng.integers(0, 2, 200)
    for error in (LinearBinError(10), LinearBinError(7, "equal-mass")):
        orders = [rng.permutation(200) for _ in range(20)]
        assert len({round(error.value(View(p[o], y[o])), 13) for o in orders}) == 1


def test_a_weight_of_two_is_two_rows_and_zero_is_none() -> None:
    rng = np.random.default_rng(7)
    p, y, w = rng.integers(0, 41, 60) / 40, rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    for error in (
        LinearBinError(10),
        LinearBinError(7, "equal-mass"),
        LinearBinError(7, "equal-mass", mapping="one-bin"),
    ):
        rows = View(np.repeat(p, w), np.repeat(y, w))
        assert error.value(View(p, y, w)) == pytest.approx(error.value(rows), rel=1e-12)


@pytest.mark.parametrize("base", ["uniform", "equal-mass"])
@pytest.mark.parametrize("mapping", ["convex", "one-bin"])
@pytest.mark.parametrize(
    ("view", "value"),
    [
        (View([0.7], [1]), 0.3),
        (View([0.3] * 12, [0, 1, 0] * 4), 1 / 30),
        (View([0.0, 0.0, 1.0, 1.0], [0, 0, 1, 1]), 0.0),
        (View([0.0] * 5 + [1.0] * 5, [1] * 5 + [0] * 5), 1.0),
        (View([1.0 + 2e-16] * 4, [1] * 4), 2.2e-16),
        (View([0.1, 0.2, 0.3, 1.0], [1, 1, 1, 1], [0, 0, 0, 2]), 0.0),
    ],
)
def test_edge_data_give_a_number(view: View, value: float, mapping: str, base: str) -> None:
    assert LinearBinError(base=base, mapping=mapping).value(view) == pytest.approx(value, abs=1e-12)


def test_a_confidence_below_one_k_th_by_rounding_is_in_the_first_bin() -> None:
    # estimating_eces: an AssertionError
    below = np.nextafter(1 / 3, 0)
    assert LinearBinError(4, range="1/K").value(View([below], [1], classes=3)) == pytest.approx(2 / 3, rel=1e-12)


def test_what_has_no_meaning_together_is_refused() -> None:
    with refused("TO205"):
        LinearBinError(mapping="one-bin", weights="swapped")
    with refused("TO205"):
        LinearBinError(range="1/K").value(View([0.5], [1], classes=0))
    with refused("TO205"):
        LinearBinError().value(View([[0.5, 0.3, 0.2]], [[1, 0, 0]]))
