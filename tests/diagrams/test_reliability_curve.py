"""Values, limits, words and pictures of the reliability curve through a Gaussian."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import beta, binom

import trueodds as to
from tests.diagrams.artists import name_of
from tests.diagrams.test_drawing import classwise, marks, view
from tests.reference import data, frame, golden
from trueodds.calibrators.kernel import KernelSpec, kernel_regression
from trueodds.core.errors import InputError
from trueodds.diagrams._style.formatting import format_probabilities
from trueodds.diagrams._style.marks import LEGEND_SIZE
from trueodds.diagrams.curve_smoother import CurveSmoother, pairwise_kernel_weights, smooth_view
from trueodds.diagrams.reliability_curve import ReliabilityCurve
from trueodds.estimators.integrated_calibration_index import IntegratedIndex
from trueodds.lenses.view import View

BANDS = ["confidence", "consistency", None]
SCALES = ["logit", "probability"]


def part(diagram, name="curve", panel=0):
    rows = diagram.rows(panel)
    return {column: values[rows["part"] == name] for column, values in rows.items()}


def codes(diagram):
    return [note.code for note in diagram.notes]


def limits(of, scale="logit", bandwidth="silverman"):
    """The limits of a view's curve, and its columns."""
    scores, smoother, columns = smooth_view(of, bandwidth, scale, None)
    return smoother.rates(scores, columns), columns, smoother, scores


# Values


@pytest.mark.parametrize(("bandwidth", "key"), [("silverman", "silverman_09"), ("normal", "silverman_106")])
def test_the_reference_curve_and_bandwidth(bandwidth, key):
    # scipy's gaussian_kde with explicit reflection (golden/recalibration/kde_recal.json).
    want, rows = golden("recalibration/kde_recal.json"), frame("recalibration/binary.csv")
    diagram = ReliabilityCurve(scale="probability", bandwidth=bandwidth)([View(rows["p"], rows["y"], name="positive")])
    assert diagram.panels["bandwidth"][0] == pytest.approx(want[key]["h"], rel=1e-12)
    curve = part(diagram)
    for at, value in zip(want["grid"], want[key]["pred_grid"], strict=True):
        if round(200 * at, 9) == round(200 * at):  # a place of the table
            assert curve["rate"][np.isclose(curve["score"], at)] == pytest.approx(value, abs=1e-12)
        # Between places, .005 apart, straight lines: |r''| stays below 4/h² for rates in [0, 1].
        bound = 0.005**2 / 8 * 4 / want[key]["h"] ** 2
        assert np.interp(at, curve["score"], curve["rate"]) == pytest.approx(value, abs=bound)


def test_two_scores_by_hand():
    # .3 came, .7 did not; h = .2 at .4: distances .1 and .3, images −.3, −.7, 1.7, 1.3 at .7, 1.1, 1.3, .9.
    near, distant = (sum(np.exp(-((d / 0.2) ** 2) / 2) for d in ds) for ds in ((0.1, 0.7, 1.3), (0.3, 1.1, 0.9)))
    diagram = ReliabilityCurve(scale="probability", bandwidth=0.2)([View([0.3, 0.7], [1, 0], name="positive")])
    curve = {name: column[np.isclose(part(diagram)["score"], 0.4)][0] for name, column in part(diagram).items()}
    rate, reference = near / (near + distant), (0.3 * near + 0.7 * distant) / (near + distant)
    assert curve["rate"] == pytest.approx(rate, abs=1e-12)
    assert curve["reference"] == pytest.approx(reference, abs=1e-12)
    assert curve["error"] == pytest.approx(rate - reference, abs=1e-12)
    # Moved as the reference, .4 and something, is to .4; 1 stays, and the rate lies between the two.
    share = (1 - 0.4) / (1 - reference)
    assert reference < rate
    assert curve["probability"] == pytest.approx(1 - (1 - rate) * share, abs=1e-12)
    # So many rows as the two are worth, and Clopper & Pearson's limits for their part that came.
    effective = (near + distant) ** 2 / (near**2 + distant**2)
    assert curve["effective"] == pytest.approx(effective)
    n_events, failed = effective * rate, effective * (1 - rate)
    assert curve["low"] == pytest.approx(beta.ppf(0.025, n_events, failed + 1))
    assert curve["high"] == pytest.approx(beta.ppf(0.975, n_events + 1, failed))
    assert curve["low"] < reference  # there 0 stays
    assert curve["probability_low"] == pytest.approx(curve["low"] * 0.4 / reference)
    assert curve["probability_high"] == pytest.approx(1 - (1 - curve["high"]) * share)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bandwidth", ["silverman", "normal"])
def test_it_is_the_curve_of_the_calibrator_kernel(scale, bandwidth):
    rows = frame("recalibration/binary.csv")
    p, y = rows["p"], rows["y"]
    calibration_map = KernelSpec(bandwidth, scale=scale, monotone=False).fit(
        np.stack([1 - p, p], axis=1), np.stack([1 - y, y], axis=1), np.ones(len(p))
    )
    curve = part(ReliabilityCurve(bandwidth=bandwidth, scale=scale)([View(p, y, name="positive")]))
    at = curve["score"][(curve["score"] >= p.min()) & (curve["score"] <= p.max())]
    applied = calibration_map.apply(np.stack([1 - at, at], axis=1))[:, 1]
    assert np.interp(at, curve["score"], curve["rate"]) == pytest.approx(applied, abs=1e-7)


@pytest.mark.parametrize("mirrored", [True, False])
@pytest.mark.parametrize("h", [0.02, 0.3, 1.0])
def test_the_limits_see_rows_through_the_same_gaussian_as_the_curve(mirrored, h):
    rng = np.random.default_rng(0)
    s, x = np.sort(rng.random(40)), np.linspace(0, 1, 21)
    w, wy = rng.random(40) + 0.1, rng.random(40) * 0.1
    near = pairwise_kernel_weights(s, x, h, has_images=mirrored)
    assert (wy @ near) / (w @ near) == pytest.approx(kernel_regression(x, s, w, wy, h, mirrored)[0], abs=1e-12)


def test_confidences_are_mirrored_where_they_begin():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([2, 2, 2], 300)
    preds = to.Predictions(rng.integers(0, 3, 300), P)
    own, zero = (
        to.draw(preds, "reliability_curve", lens="confidence", scale="probability", bandwidth=0.1, range=range)
        for range in ("auto", None)
    )
    assert own.panels["range_low"][0] == pytest.approx(1 / 3)
    assert zero.panels["range_low"][0] == 0
    assert part(own)["score"][0] == pytest.approx(1 / 3)
    # At 1/3 each score counts twice, with its image, so the curve there is that of scores on both sides.
    top, right = P.max(axis=1), P.argmax(axis=1) == preds.y
    g = sum(np.exp(-(((1 / 3 - image) / 0.1) ** 2) / 2) for image in (top, 2 / 3 - top, 2 - top))
    assert part(own)["rate"][0] == pytest.approx((g * right).sum() / g.sum(), abs=1e-12)
    assert own.at(1 / 3).probability == pytest.approx(part(own)["probability"][0])
    with pytest.raises(InputError, match="TO205"):
        ReliabilityCurve(scale="probability", range="1/K")([View([0.2, 0.7], [0, 1], name="confidence", classes=3)])


def test_a_calibrated_models_curve_bends_at_the_ends_and_is_not_taken_for_an_error():
    # Half of the rows at each score come exactly as often as stated: the curve leaves the diagonal, the error is 0.
    p = np.repeat(np.arange(1, 20) / 20, 400)
    y = np.concatenate([np.arange(400) < 20 * i for i in range(1, 20)])
    for band in ("confidence", "consistency"):
        for settings in ({}, {"simultaneous": True}):
            diagram = ReliabilityCurve(band=band, scale="probability", bandwidth=0.1, **settings)([View(p, y)])
            curve = part(diagram)
            assert np.abs(curve["rate"] - curve["score"]).max() > 0.05
            assert np.abs(curve["error"]).max() < 1e-12
            assert not curve["outside"].any()
            assert curve["probability"] == pytest.approx(curve["score"], abs=1e-12)
            assert diagram.panels["local_error"][0] == pytest.approx(0, abs=1e-12)
            assert "lies inside the" in diagram.finding


# Loess


def test_a_loess_curve_by_hand():
    # 5 rows at 0, .2, .4, .6 and .8: windows of floor(.75 · 5) = 3 rows. Around .4 these end at .2 and .6, which have
    # tricube weight 0, so the curve is the outcome. At 0 the window ends at .4, and 0 and .2 carry a line.
    p, y = np.array([0, 2, 4, 6, 8]) / 10, np.array([0, 1, 0, 1, 1])
    curve = part(ReliabilityCurve(smoother="loess")([View(p, y, name="positive")]))
    assert curve["score"] == pytest.approx(p)
    assert curve["rate"] == pytest.approx(y, abs=1e-12)
    assert curve["effective"] == pytest.approx(np.ones(5))
    assert curve["reference"] == pytest.approx(p)
    # Clopper and Pearson's limits of one event in one row, and of none.
    assert curve["low"] == pytest.approx(np.where(y == 1, 0.025, 0), abs=1e-9)
    assert curve["high"] == pytest.approx(np.where(y == 0, 0.975, 1), abs=1e-9)


def test_a_loess_curve_of_two_scores_is_their_rates_with_their_exact_limits():
    p, y = np.repeat([0.2, 0.8], 20), np.concatenate([np.arange(20) < 5, np.arange(20) < 16])
    diagram = ReliabilityCurve(smoother="loess", level=0.95)([View(p, y, name="positive")])
    curve = part(diagram)
    assert curve["rate"] == pytest.approx([0.25, 0.8])
    assert curve["effective"] == pytest.approx([20, 20])
    assert curve["low"] == pytest.approx(beta.ppf(0.025, [5, 16], [16, 5]))
    assert curve["high"] == pytest.approx(beta.ppf(0.975, [6, 17], [15, 4]))
    assert diagram.at(0.5).probability == pytest.approx(0.525)
    assert diagram.at(0.9).reason == "All predictions lie between 0.2 and 0.8."


def test_the_loess_curve_is_that_of_ici():
    rng = np.random.default_rng(0)
    p = rng.random(900)
    view = View(p, rng.random(900) < 0.3 + 0.4 * p**2, name="positive")  # far from 0 and 1, so that nothing is clipped
    diagram = ReliabilityCurve(smoother="loess")([view])
    curve = part(diagram)
    assert np.abs(np.interp(p, curve["score"], curve["rate"]) - p).mean() == pytest.approx(
        IntegratedIndex().value(view), rel=1e-9
    )
    assert diagram.panels["local_error"][0] == pytest.approx(IntegratedIndex().value(view), rel=1e-9)


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("band", ["confidence", "consistency"])
def test_the_loess_band_holds_a_calibrated_model(band, simultaneous):
    # Over 60 data sets the share of scores at which a pointwise band of 90 % holds the truth has a standard deviation
    # below .2 each, so its mean lies within 4 · .2/√60 = .1 of .9. A simultaneous band fails Binomial(60, .1) times.
    rng, shares = np.random.default_rng(1), []
    for _ in range(60):
        p = rng.uniform(0.1, 0.9, 300)
        recipe = ReliabilityCurve(band, 0.9, smoother="loess", simultaneous=simultaneous, resamples=100)
        curve = part(recipe([View(p, rng.random(300) < p, name="positive")], rng=np.random.default_rng(2)))
        shares.append(1 - curve["outside"].mean())
    if simultaneous:
        assert np.sum(np.array(shares) < 1) <= binom.ppf(0.999, 60, 0.1)
    else:
        assert 0.8 < np.mean(shares) < 1


@pytest.mark.parametrize("changed", [{"bandwidth": 0.3}, {"scale": "probability"}, {"range": None}])
def test_settings_of_the_kernel_are_refused_for_loess(changed):
    with pytest.raises(InputError, match=f"no {next(iter(changed))}"):
        ReliabilityCurve(smoother="loess", **changed)


# Few rows


@pytest.mark.parametrize("band", BANDS)
def test_a_single_event_among_few_rows_is_no_peak(band):
    # 690 rows from .02 to .3, and 10 below .015, of which one is an event: its kernel holds fewer than 10 rows.
    rng = np.random.default_rng(0)
    p = np.concatenate([np.linspace(0.02, 0.3, 690), np.linspace(0.002, 0.014, 10)])
    y = np.concatenate([rng.random(690) < p[:690], np.arange(10) == 7])
    diagram = ReliabilityCurve(band=band)([View(p, y, name="positive")])
    curve = part(diagram)
    near = curve["score"] < 0.012
    assert curve["rate"][near].max() > 0.15  # the table keeps it
    assert (curve["effective"][near] < 10).all()
    drawn = np.concatenate([mark.coordinates[0] for mark in diagram.marks(0, LEGEND_SIZE) if mark.layer == "curve"])
    assert drawn.min() > 0.012
    assert set(drawn) == set(curve["score"][curve["effective"] >= 10])
    assert "not drawn where few rows contribute" in next(note.text for note in diagram.notes if note.code == "TN259")
    assert not (band and curve["outside"][near].any())


# Rows, cells, weights, votes


def test_a_weight_of_two_is_two_rows_for_the_curve_and_importance_for_the_limits():
    rng = np.random.default_rng(1)
    p, w = rng.random(60), rng.integers(1, 3, 60)
    y = (rng.random(60) < p).astype(float)
    weighted, twice, same = (
        part(ReliabilityCurve()([View(*of, name="positive")]))
        for of in ((p, y, w), (np.repeat(p, w), np.repeat(y, w)), (p, y, np.full(60, 7.5)))
    )
    for name in ("score", "rate", "reference"):
        np.testing.assert_allclose(weighted[name], twice[name], rtol=1e-10)
    assert (weighted["effective"] < twice["effective"]).all()
    alike = part(ReliabilityCurve()([View(p, y, name="positive")]))
    np.testing.assert_allclose(same["low"], alike["low"], rtol=1e-9)  # weights that are no counts and all equal


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("band", ["confidence", "consistency"])
def test_a_tally_draws_what_its_rows_draw(scale, band):
    rng = np.random.default_rng(5)
    p = rng.integers(1, 40, 5000) / 40  # every cell holds one score
    preds = to.Predictions((rng.random(5000) < p**1.3).astype(int), p)
    # Stated probabilities of cells differ by a rounding, after which draws of labels are others.
    rows, cells = (
        to.draw(data, "reliability_curve", scale=scale, band=band, simultaneous=band == "confidence")
        for data in (preds, to.tally(preds))
    )
    for name in ("score", "rate", "reference", "low", "high", "effective"):
        np.testing.assert_allclose(part(cells)[name], part(rows)[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(part(cells, "strip")["share"], part(rows, "strip")["share"])
    assert "TN244" in codes(cells)
    assert "TN244" not in codes(rows)


@pytest.mark.parametrize("scale", SCALES)
def test_the_order_of_the_rows_and_ties_are_irrelevant(scale):
    p, y = np.repeat([0.2, 0.5, 0.7], 20), np.tile([0, 1, 1, 0, 1], 12)
    order = np.random.default_rng(1).permutation(60)
    for band in BANDS:
        recipe = ReliabilityCurve(band=band, scale=scale, simultaneous=True)
        first, reordered = (recipe([View(p[rows], y[rows], name="positive")]) for rows in (slice(None), order))
        assert first.to_dict() == reordered.to_dict()


def test_votes_vary_less_than_labels_and_the_limits_follow():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    labels, votes = (limits(View(p, rng.binomial(m, p) / m))[0] for m in (1, 10))
    assert labels.dispersion == 1
    assert votes.dispersion == pytest.approx(0.1, rel=0.1)  # the variance of a mean of 10; sd of 3,000 squares .03
    diagram = ReliabilityCurve()([View(p, rng.binomial(10, p) / 10, name="positive")])
    assert "TN243" in codes(diagram)


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.0], [0]),
        ([1.0], [1]),
        ([1.0], [0]),
        ([0.5], [1]),
        ([0.7] * 30, [1] * 30),
        ([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 1]),
        ([0.0, 1e-15, 1 - 1e-9, 1.0 + 1e-15], [0, 0, 1, 1]),
        ([0.2, 0.4, 0.4, 0.9], [0.3, 0.5, 0.5, 1.0]),
    ],
)
def test_the_smallest_and_the_sharpest_data_have_a_finite_curve(p, y, scale, band, simultaneous):
    recipe = ReliabilityCurve(band=band, scale=scale, simultaneous=simultaneous)
    diagram = recipe([View(p, y, name="positive")])
    curve = part(diagram)
    for name in ("rate", "reference", "probability", *(("low", "high") if band else ())):
        assert ((curve[name] >= 0) & (curve[name] <= 1)).all(), name
    if band == "confidence":
        assert (curve["low"] < curve["high"]).all()  # a band without width would claim certainty
    for score in p:
        assert np.isfinite(diagram.at(min(score, 1.0)).probability)
    assert diagram.finding
    json.dumps(diagram.to_dict(), allow_nan=False)


def test_a_row_of_weight_0_is_no_row():
    a = ReliabilityCurve()([View([0.2, 0.6, 0.9], [0, 1, 1], [1, 1, 0], name="positive")])
    b = ReliabilityCurve()([View([0.2, 0.6], [0, 1], name="positive")])
    np.testing.assert_allclose(part(a)["rate"], part(b)["rate"])


# One prediction


def test_one_predictions_probability_is_read_from_the_table():
    diagram = ReliabilityCurve()([view(name="confidence", n=2000)])
    curve = part(diagram)
    i = int(np.flatnonzero(curve["score"] == 0.9)[0])  # full per cents are places
    got = diagram.at(0.9)
    assert got[:4] == (
        curve["probability"][i],
        curve["probability_low"][i],
        curve["probability_high"][i],
        curve["error"][i],
    )
    assert not got.reason
    a, b = curve["score"][i : i + 2]
    between = diagram.at((a + b) / 2)
    assert between.error == pytest.approx(curve["error"][i : i + 2].mean())
    assert between.low == pytest.approx(curve["probability_low"][i : i + 2].mean())


def test_where_nobody_stated_anything_nothing_is_known():
    p = np.repeat([0.3, 0.8], 50)
    diagram = ReliabilityCurve(scale="probability", bandwidth=0.05)([View(p, np.tile([0, 1], 50), name="positive")])
    for score in (0.0, 0.24, 0.36, 0.5, 0.74, 0.86, 1.0):
        got = diagram.at(score)
        assert np.isnan(got[:4]).all()
        assert f"bandwidth (0.05) of {score:g}" in got.reason
    for score in (0.25, 0.3, 0.35, 0.75, 0.8, 0.85):
        assert np.isfinite(diagram.at(score)[:4]).all()
    assert np.unique(part(diagram)["piece"]).tolist() == [0, 1]


@pytest.mark.parametrize("scale", SCALES)
def test_every_stated_score_is_known(scale):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.beta(0.2, 3, 50), rng.random(5), [0.0, 1.0, 1e-7, 1 - 1e-10]])
    diagram = ReliabilityCurve(scale=scale)([View(p, rng.random(59) < 0.5, name="positive")])
    assert all(np.isfinite(diagram.at(score).probability) for score in p)


def test_limits_of_one_probability_need_the_band_of_confidence():
    got = ReliabilityCurve(band="consistency")([view()]).at(0.7)
    assert np.isfinite(got.probability)
    assert np.isnan(got.low)
    assert "band='confidence'" in got.reason


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("outcome", [0, 1])
def test_where_all_outcomes_are_equal_the_limits_hold_the_only_observed_rate(scale, outcome):
    # A calibrated curve ends below the last score; freed of that, a limit of 0 would lie above the rate, which is 0.
    p = np.random.default_rng(0).random(500)
    diagram = ReliabilityCurve(scale=scale)([View(p, np.full(500, outcome), name="positive")])
    curve = part(diagram)
    ends = ("probability", "probability_low" if outcome == 0 else "probability_high")
    for name in ends:
        assert (curve[name] == outcome).all()
    assert (curve["probability_low"] < curve["probability_high"]).all()
    got = diagram.at(0.9)
    assert (got.probability, got.high if outcome else got.low) == (outcome, outcome)
    finding = diagram.finding.replace("\u00a0", " ")
    assert ("observed 100 % [" if outcome else "observed 0 % [0 %, ") in finding


def test_with_hardly_any_events_probabilities_stay_small_and_limits_have_a_width():
    # One that came, far from most: near these the curve is not quite 0, yet a shift by score − reference is .1.
    p = np.random.default_rng(2).beta(0.3, 3, 1000)
    diagram = ReliabilityCurve()([View(p, p == p.max(), name="positive")])
    curve = part(diagram)
    shift = np.abs(curve["score"] - curve["reference"])
    rare = (curve["rate"] < 1e-3) & (curve["score"] > 1e-3)
    assert shift[rare].max() > 0.05
    # The slope from 0 to the reference, where the score is up to half as large again.
    assert (curve["probability"][rare] < 2e-3).all()
    assert (curve["probability_low"][rare] < 1e-3).all()
    assert (curve["probability_high"] > curve["probability_low"]).all()


def test_a_stated_0_or_1_leaves_the_limits_a_width():
    # Scores from 0 on: the reference at 0 is above all that came, and everything below it becomes 0.
    p = np.linspace(0, 0.2, 2000)
    for prob, outcome in ((p, 0), (1 - p, 1)):
        diagram = ReliabilityCurve(scale="probability", bandwidth=0.05)([View(prob, np.full(2000, outcome))])
        got = diagram.at(float(outcome))
        assert got.probability == outcome
        assert 0.001 < got.high - got.low < 0.02


def test_limits_in_words_have_as_many_decimals_as_each_other():
    texts = [
        format_probabilities(*of)
        for of in ((0.029, 0.0288, 0.07), (0.9, 0.85, 0.999), (0.0, 0.0, 0.012), (1e-6, 0.0, 0.5))
    ]
    assert [[text.replace("\u00a0", " ") for text in of] for of in texts] == [
        ["2.9 %", "2.9 %", "7.0 %"],
        ["90.00 %", "85.00 %", "99.90 %"],
        ["0 %", "0 %", "1.2 %"],
        ["under 0.01 %", "0 %", "50.00 %"],
    ]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "0.5", True, np.nan, [0.5]])
def test_a_score_that_is_no_probability_is_refused(wrong):
    with pytest.raises(InputError, match="TO203"):
        ReliabilityCurve()([view()]).at(wrong)


def test_each_view_has_its_own_probability():
    diagram = ReliabilityCurve()(classwise(3))
    first, second = diagram.panels["view"][:2]
    assert diagram.at(0.6) == diagram.at(0.6, first) != diagram.at(0.6, second)
    with pytest.raises(InputError, match="TO203"):
        diagram.at(0.6, "class:none")


# Statistics


def drawn(rng, n, sharp):
    return np.sort(rng.beta(6, 0.6, n) if sharp else rng.random(n))


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sharp", [False, True])
def test_bands_hold_as_often_as_they_say(scale, sharp):
    # Truth p^1.5, seen through the same Gaussian. Over 40 data sets a band that holds all places with probability .9
    # fails Binomial(40, .1) times: below its 99.9 % quantile. At single places, the mean over data sets of the share
    # of places: its sd for one data set is .15 at most here, so it lies within 4 · .15/√40 = .1 below .9.
    sets, n, rng = 40, 150, np.random.default_rng(7)
    failed, alone, null, null_alone = 0, [], 0, []
    for _ in range(sets):
        p = drawn(rng, n, sharp)
        band_limits, columns, smoother, scores = limits(View(p, rng.random(n) < p**1.5), scale)
        x = smoother.on_scale(columns["score"])
        truth = kernel_regression(
            x,
            smoother.on_scale(scores.score),
            scores.w,
            scores.w * scores.score**1.5,
            smoother.relative_bandwidth,
            smoother.reflects,
        )[0]
        low, high = band_limits.confidence_limits(0.9, 200, None)
        alone.append(((low <= truth) & (truth <= high)).mean())
        low, high = band_limits.confidence_limits(0.9, 200, rng)
        failed += bool(((truth < low) | (truth > high)).any())
        band_limits, columns, _, _ = limits(View(p, rng.random(n) < p), scale)
        low, high = band_limits.consistency_limits(0.9, 200, None)
        null_alone.append(((low <= columns["rate"]) & (columns["rate"] <= high)).mean())
        low, high = band_limits.consistency_limits(0.9, 200, rng)
        null += bool(((columns["rate"] < low) | (columns["rate"] > high)).any())
    upper_bound = binom.ppf(0.999, sets, 0.1)
    assert failed <= upper_bound
    assert null <= upper_bound
    assert np.mean(alone) > 0.8
    assert 0.8 < np.mean(null_alone) < 0.98  # and it is no wider than it must be


def test_limits_that_hold_together_are_wider_and_levels_are_kept():
    widths = {}
    for simultaneous in (False, True):
        for level in (0.5, 0.9, 0.99):
            for band in ("confidence", "consistency"):
                diagram = ReliabilityCurve(band=band, level=level, simultaneous=simultaneous)([view(name="positive")])
                widths[band, simultaneous, level] = part(diagram)["high"] - part(diagram)["low"]
                phrase = "simultaneous" if simultaneous else "pointwise"
                assert any(f"{100 * level:.4g}\u00a0%" in text and phrase in text for _, text in diagram.legend())
    for (band, simultaneous, level), width in widths.items():
        assert (width <= widths[band, True, level] + 1e-12).all()
        assert width.mean() <= widths[band, simultaneous, 0.99].mean()


def test_draws_are_seeded_and_only_bands_that_hold_together_draw():
    def make(rng, **settings):
        return ReliabilityCurve(**settings)([view(name="positive")], rng).to_dict()

    assert make(3, simultaneous=True) == make(3, simultaneous=True) != make(4, simultaneous=True)
    assert make(3) == make(4)


def test_many_rows_cost_what_their_grid_costs():
    rng = np.random.default_rng(0)
    band_limits, columns, *_ = limits(View(p := rng.random(100_000), rng.random(100_000) < p))
    assert band_limits.score_groups.n.sum() == 100_000
    assert len(band_limits.score_groups.score) < 1000
    assert len(columns["score"]) < 1000


# Words and notes


def described_curve(diagram):
    """The drawn curve with its band at the score that the finding names, as the finding writes it."""
    finding = diagram.finding.replace("\u00a0", " ")
    score, curve = float(finding.split("] at ")[1].split(" %")[0]) / 100, part(diagram)
    rate, low, high = (100 * np.interp(score, curve["score"], curve[name]) for name in ("rate", "low", "high"))
    return f"{rate:.0f} % [{low:.0f} %, {high:.0f} %]"


def test_the_finding_gives_the_numbers_of_the_drawn_curve():
    """It gave those of `at`, without the bias of smoothing, which are not on the curve."""
    rng = np.random.default_rng(5)
    p = rng.beta(1.5, 4, 300)
    diagram = to.draw(rng.random(300) < 0.6 * p, p, "reliability_curve")
    assert f"observed {described_curve(diagram)}" in diagram.finding.replace("\u00a0", " ")
    curve = part(diagram)
    assert np.abs(curve["rate"] - curve["probability"]).max() > 0.02


@pytest.mark.slow
def test_the_legend_says_what_the_band_excludes():
    """The confidence band always contains the curve; what it may exclude is calibration."""
    rng = np.random.default_rng(5)
    p = rng.random(500)
    y = rng.random(500) < p**2
    for band, label in (("confidence", "band excludes calibration"), ("consistency", "outside the band")):
        figure = to.draw(y, p, "reliability_curve", band=band).draw()
        figure.draw_without_rendering()
        assert label in [text.get_text() for text in figure.legends[0].get_texts()]


def test_where_it_is_miscalibrated_is_put_in_words():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 0.95, 20_000)
    y = rng.random(20_000) < np.where(p > 0.72, p - 0.1, p)
    diagram = ReliabilityCurve(scale="probability")([View(p, y, name="confidence")])
    finding = diagram.finding.replace("\u00a0", " ")
    assert finding.startswith("Overconfident between 7")
    assert described_curve(diagram) in finding
    assert f"{100 * diagram.panels['local_error'][0]:.1f} points" in finding
    other = ReliabilityCurve(scale="probability")([View(p, y, name="positive")]).finding
    assert other.startswith("Overpredicts between 7")
    assert ": observed" in other
    little = ReliabilityCurve()([View(1 - p, ~y, name="positive")]).finding
    assert little.startswith("Underpredicts between")


def test_the_local_error_is_the_mean_over_the_predictions():
    # One narrow Gaussian on each of two scores: off by .2 for 30 rows and by .1 for 10.
    p, y = np.repeat([0.3, 0.8], [30, 10]), np.r_[np.arange(30) < 15, np.arange(10) < 7]
    diagram = ReliabilityCurve(scale="probability", bandwidth=0.02)([View(p, y, name="positive")])
    assert diagram.panels["local_error"][0] == pytest.approx(0.75 * 0.2 + 0.25 * 0.1)


def test_views_come_with_the_largest_local_error_first():
    diagram = ReliabilityCurve()([view(1, name="class:good"), View([0.9] * 50, [0] * 50, name="class:bad")])
    assert diagram.panels["view"].tolist() == ["class:bad", "class:good"]
    assert diagram.finding.startswith("Largest local error: bad. ")


def test_of_many_views_those_that_are_drawn_have_bands():
    diagram = ReliabilityCurve()(classwise(14, n=60))
    curve = diagram.table["part"] == "curve"
    banded = {
        name
        for name in diagram.panels["view"]
        if np.isfinite(diagram.table["low"][curve & (diagram.table["view"] == name)]).all()
    }
    assert banded == set(diagram.panels["view"][:12])
    assert "TN245" in codes(diagram)


def test_what_the_curve_is_not_is_noted():
    one, all_ = ReliabilityCurve()([view()]), ReliabilityCurve(simultaneous=True)([view()])
    assert "TN259" in codes(one)
    assert "It is pointwise" in one.notes[0].text
    assert "pointwise" not in all_.notes[0].text
    narrow = ReliabilityCurve(scale="probability")([View([0.4] * 9 + [0.9], [0, 1] * 5, name="positive")])
    assert codes(narrow)[0] == "TN258"
    assert "TN258" not in codes(ReliabilityCurve(scale="probability", bandwidth=0.002)([view()]))


# Pictures


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("gap", [False, True])
def test_what_is_drawn_is_the_table(band, gap):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.1, 0.3, 300), rng.uniform(0.7 if gap else 0.3, 0.9, 300)])
    recipe = ReliabilityCurve(band=band, scale="probability", bandwidth=0.03)
    diagram = recipe([View(p, rng.random(600) < p**2, name="positive")])
    ax, curve = diagram.draw().axes[0], part(diagram)
    pieces = np.unique(curve["piece"])
    assert len(pieces) == 1 + gap
    for label, column in (("curve", "rate"), ("reference", "reference")):
        lines = marks(ax, label)
        np.testing.assert_array_equal(np.concatenate([line.get_xdata() for line in lines]), curve["score"])
        np.testing.assert_array_equal(np.concatenate([line.get_ydata() for line in lines]), curve[column])
        assert len(lines) == len(pieces)  # no line over a gap
    outside = np.concatenate([line.get_ydata() for line in marks(ax, "outside")] or [[]])
    np.testing.assert_array_equal(outside[np.isfinite(outside)], curve["rate"][curve["outside"]])
    assert (band is not None) == curve["outside"].any()
    shapes = marks(ax, "band")
    assert len(shapes) == (len(pieces) if band else 0)
    corners = {tuple(corner) for shape in shapes for corner in shape.get_paths()[0].vertices}
    if band:
        for x, low, high in zip(curve["score"], curve["low"], curve["high"], strict=True):
            assert {(x, low), (x, high)} <= corners
    (strip,) = [child for child in ax.child_axes if name_of(child) == "strip"]
    heights = [path.vertices[1, 1] for shape in marks(strip, "share") for path in shape.get_paths()]
    np.testing.assert_array_equal(heights, part(diagram, "strip")["share"])


def test_the_band_of_a_dozen_rows_is_fainter_than_that_of_thousands():
    p = np.r_[np.random.default_rng(0).uniform(0.05, 0.35, 2988), np.full(12, 0.8)]
    for band in ("confidence", "consistency"):
        recipe = ReliabilityCurve(band=band, scale="probability", bandwidth=0.02)
        many, few = marks(recipe([View(p, np.arange(3000) % 5 == 0, name="positive")]).draw().axes[0], "band")
        assert few.get_paths()[0].vertices[:, 0].min() > 0.7
        assert few.get_alpha() == pytest.approx(0.12 + 0.43 * 12 / 20, rel=0.01)
        assert many.get_alpha() == pytest.approx(0.55)


@pytest.mark.parametrize("band", BANDS)
def test_in_small_axes_a_requested_legend_holds_every_entry(band):
    figure = Figure(figsize=(3.4, 2.9))
    ax = figure.add_axes((0.22, 0.2, 0.7, 0.68))
    diagram = ReliabilityCurve(band=band)([View([0.2, 0.8] * 200, [1, 0] * 200, name="positive")])
    diagram.draw(ax, legend=True)
    figure.draw_without_rendering()
    legend, box = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert box.x0 <= legend.x0 < legend.x1 <= box.x1
    assert box.y0 <= legend.y0 < legend.y1 <= box.y1
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(texts) == len(diagram.legend())  # none is left out
    assert not band or any("95\u00a0%" in text for text in texts)  # the level, too


def test_sharp_networks_are_read_on_log_odds():
    # VGG16: 88 % of the confidences exceed .98, and nine tenths of its errors lie above .7.
    dataset = data("plambda_cifar10_vgg16.npz")
    diagram = to.draw(to.Predictions(dataset["labels"], dataset["probs"]), "reliability_curve")
    assert diagram.finding.startswith("Overconfident between 5")
    got = diagram.at(0.9)
    top = dataset["probs"].max(axis=1)
    near = (top > 0.87) & (top < 0.93)
    rate = (dataset["probs"].argmax(axis=1) == dataset["labels"])[near].mean()
    assert got.low < rate < got.high


def test_a_place_is_a_third_of_a_bandwidth_from_the_next():
    for low, bandwidth in ((0.0, 0.002), (0.0, 0.3), (1 / 3, 0.05)):
        at, piece = CurveSmoother("probability", low, bandwidth).curve_points(np.linspace(low, 1, 5000))
        assert np.diff(at).max() <= min(bandwidth / 3, 0.005) + 1e-12
        assert (at[0], at[-1]) == (low, 1.0)
        assert not piece.any()
