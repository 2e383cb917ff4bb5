"""Venn-Abers prediction."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from tests.calibrators.rows import both, draw_predictions, labels, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.venn_abers import VennAbersSpec, couple_pairs, pair_score
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

PAIRS = "one-vs-one"


def fit_map(P, y, w=None, **settings):
    return VennAbersSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def ends(m, p):
    low, high = m.interval(both(p))
    return low[:, 1], high[:, 1]


def refitted(p, y, w, s, outcome):
    """The isotonic fit at s with a row (s, came) of weight 1 added, by scipy, tied scores pooled."""
    x, where = np.unique(np.append(p, s), return_inverse=True)
    mass = np.bincount(where, np.append(w, 1.0))
    event_sums = np.bincount(where, np.append(w * y, outcome))
    mask = mass > 0
    return isotonic_regression(event_sums[mask] / mass[mask], weights=mass[mask]).x[np.searchsorted(x[mask], s)]


def test_the_ends_are_two_isotonic_fits_worked_by_hand():
    # Outcomes 0 1 0 1 at .1 .2 .3 .4, asked at .25. With a 0 there: 0 | 1 0 0 | 1, so 1/3; with a 1: 0 | 1 1 0 | 1,
    # so 2/3. Merged (2/3)/(1 − 1/3 + 2/3) = 1/2.
    m = fit_map(both([0.1, 0.2, 0.3, 0.4]), [0, 1, 0, 1])
    low, high = ends(m, [0.25])
    assert (low[0], high[0]) == pytest.approx((1 / 3, 2 / 3))
    assert m.apply(both([0.25]))[0] == pytest.approx([0.5, 0.5])
    # Below all scores: a 0 is alone with rate 0; a 1 pools with the 0 at .1: 1 0 | 1 0 | 1 gives 1/2 and again 1/2.
    assert np.ravel(ends(m, [0.05])) == pytest.approx([0.0, 0.5])


def test_the_reference_numbers():
    # venn-abers 1.5.4 and brute force, 2e-16 (golden/recalibration/venn_abers.json).
    want, rows = golden("recalibration/venn_abers.json"), frame("recalibration/binary.csv")
    m = fit_map(both(rows["p"]), rows["y"])
    low, high = ends(m, want["grid"])
    assert low == pytest.approx(want["p0"], abs=1e-12)
    assert high == pytest.approx(want["p1"], abs=1e-12)
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(want["merged"], abs=1e-12)


def test_the_reference_numbers_with_ties():
    want, rows = golden("recalibration/venn_abers.json"), frame("recalibration/binary_ties.csv")
    got = np.stack(ends(fit_map(both(rows["p"]), rows["y"]), want["ties_grid"]), axis=1)
    assert got == pytest.approx(np.array(want["ties_p0p1"]), abs=1e-12)


@pytest.mark.parametrize(("multiclass", "key"), [("one-vs-rest", "ovr_pred"), (PAIRS, "ovo_pred")])
def test_the_reference_numbers_of_four_classes(multiclass, key):
    want = golden("recalibration/venn_abers.json")
    rows, test = frame("recalibration/multi4.csv"), frame("recalibration/multi4_test.csv")
    m = fit_map(columns(rows), rows["y"], multiclass=multiclass)
    assert m.apply(columns(test)) == pytest.approx(np.array(want[key]), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_every_end_is_the_fit_with_the_row_added(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = rng.integers(0, 21, n) / 20 if seed % 2 else rng.random(n)
    y, w = rng.integers(0, 3, n) / 2, np.append(2.0, rng.integers(0, 4, n - 1))
    at = np.concatenate([p, rng.random(20), [0.0, 1.0]])
    low, high = ends(VennAbersSpec().fit(both(p), both(y), w), at)
    assert low == pytest.approx([refitted(p, y, w, s, 0.0) for s in at], abs=1e-12)
    assert high == pytest.approx([refitted(p, y, w, s, 1.0) for s in at], abs=1e-12)


@pytest.mark.slow
def test_one_of_the_two_ends_is_calibrated_whatever_the_model():
    # Vovk & Petej's theorem: E(y − p_y) = 0 exactly, where p_y is the end of the outcome itself, for calibration sets
    # of any size. 2,000 sets of 20 rows and one test row each: the mean has a standard error below .5/√2000 = .011.
    rng, residuals = np.random.default_rng(0), []
    for _ in range(2000):
        p = rng.random(21)
        y = (rng.random(21) < p**3).astype(int)
        low, high = ends(fit_map(both(p[:20]), y[:20]), p[20:])
        residuals.append(y[20] - (high[0] if y[20] else low[0]))
    assert abs(np.mean(residuals)) < 4 * np.std(residuals) / np.sqrt(2000)


def test_the_merged_probability_lies_between_the_ends_and_is_never_certain():
    P, _ = draw_predictions(300, 2, 3.0, 0)
    m = fit_map(P, P.argmax(axis=1))  # separated: isotonic regression would say 0 and 1
    low, high = m.interval(P)
    Q = m.apply(P)
    assert ((low <= Q) & (Q <= high)).all()
    assert ((Q > 0) & (Q < 1)).all()
    assert (low < high).all()


def test_the_ends_of_the_two_classes_mirror_each_other():
    P, y = draw_predictions(100, 2, 2.0, 1)
    low, high = fit_map(P, y).interval(P)
    assert low[:, 0] == pytest.approx(1 - high[:, 1])
    assert high[:, 0] == pytest.approx(1 - low[:, 1])


def test_more_rows_bring_the_ends_together():
    widths = []
    for n in (100, 10_000):
        P, y = draw_predictions(n, 2, 2.0, 2)
        low, high = fit_map(P, y).interval(P)
        widths.append((high - low).mean())
    assert widths[1] < widths[0] / 10  # of the order of 1/n of a block's rows, and blocks grow as n^(2/3)


def test_the_ends_of_every_class_are_those_of_the_class_against_the_rest():
    P, y = draw_predictions(200, 3, 2.0, 3)
    preds = Predictions(y, P)
    low, high = fit(VennAbersSpec(), preds).predict_interval(P)
    for c in range(3):
        one = fit_map(both(P[:, c]), y == c)
        assert np.stack(ends(one, P[:, c])) == pytest.approx(np.stack([low[:, c], high[:, c]]))


def test_pairs_have_no_interval():
    P, y = draw_predictions(100, 3, 2.0, 4)
    with pytest.raises(InputError, match="TO510"):
        fit(VennAbersSpec(PAIRS), Predictions(y, P)).predict_interval(P)


def test_two_classes_are_one_pair():
    P, y = draw_predictions(100, 2, 2.0, 5)
    one, other = fit_map(P, y), fit_map(P, y, multiclass=PAIRS)
    assert (one.apply(P) == other.apply(P)).all()
    assert (one.interval(P)[0] == other.interval(P)[0]).all()


def test_pairs_of_zeros_are_undecided_and_noted():
    # The package venn-abers gives NaN where p_i + p_j = 0.
    P = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5], [0.0, 0.4, 0.6], [0.0, 0.0, 1.0]] * 4)
    y = np.array([0, 1, 2, 2, 2] * 3 + [0, 2, 1, 1, 0])
    result = fit(VennAbersSpec(PAIRS), Predictions(y, P))
    Q = result.predict_proba(P)
    assert np.isfinite(Q).all()
    assert Q.sum(axis=1) == pytest.approx(1)
    (note,) = result.notes
    assert note.code == "TN521"
    assert "12 of 20 rows" in note.text


@pytest.mark.parametrize("multiclass", ["one-vs-rest", PAIRS])
def test_a_class_that_never_occurred_keeps_its_column(multiclass):
    # The package venn-abers drops the column.
    P, y = draw_predictions(80, 4, 1.0, 6)
    result = fit(VennAbersSpec(multiclass), Predictions(np.minimum(y, 2), P))
    Q = result.predict_proba(P)
    assert Q.shape == (80, 4)
    assert (Q[:, 3] > 0).all()
    assert Q[:, 3].mean() < 0.1
    assert [note.code for note in result.notes] == ["TN501"]


def test_a_pair_without_rows_says_one_half_and_is_noted():
    P, y = draw_predictions(80, 4, 1.0, 7)
    result = fit(VennAbersSpec(PAIRS), Predictions(np.minimum(y, 1), P))
    assert [note.code for note in result.notes] == ["TN501", "TN522"]
    assert "1 of 6 pairs" in result.notes[1].text
    Q = result.predict_proba(P)
    # Of classes 2 and 3 nothing is known but that neither came beside 0 and 1.
    assert (Q[:, 2:].sum(axis=1) < 0.5).all()
    assert result.calibration_map.curves[-1].size == 0
    restored = calibrator_from_dict(result.to_dict())
    assert (restored.predict_proba(P) == Q).all()


def test_equal_ratios_are_ties_though_they_round_differently():
    # .1 : .3 and .15 : .45 are 1/3, but their quotients as floats are not all the same.
    a, b = np.array([0.1, 0.15, 0.05, 0.2]), np.array([0.3, 0.45, 0.15, 0.6])
    assert len(np.unique(pair_score(a, b))) == 1
    assert (pair_score(b, a) == 1 - pair_score(a, b)).all()
    assert pair_score(np.float32(a), np.float32(b)).dtype == np.float64


def test_preferences_rise_with_the_ratio():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 500)) ** 4
    order = np.argsort(b / (a + b))
    assert (np.diff(pair_score(a, b)[order]) >= 0).all()
    assert pair_score(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])).tolist() == [0.5, 1.0, 0.0]


def test_pairs_that_agree_are_joined_to_what_they_agree_on():
    # r_ij = q_j/(q_i + q_j) of one q: Price et al.'s rule gives q back.
    q = np.array([0.5, 0.3, 0.15, 0.05])
    ratios = [q[j] / (q[i] + q[j]) for i in range(4) for j in range(i + 1, 4)]
    curves = [lambda x, r=r: np.full(len(x), r) for r in ratios]
    assert couple_pairs(curves, np.full((2, 4), 0.25)) == pytest.approx(np.stack([q, q]))


def test_it_recovers_a_distortion_that_one_temperature_makes():
    # Squared and renormalized probabilities of 20,000 rows. The fit's mean squared error is of the order n^(−2/3), with
    # constants below 1 for each class; the distortion itself is .03.
    rng = np.random.default_rng(8)
    R = rng.dirichlet(np.ones(3), 20_000)
    P = R**2 / (R**2).sum(axis=1, keepdims=True)
    y = labels(R, rng)
    for multiclass, share in (("one-vs-rest", 0.2), (PAIRS, 0.1)):
        Q = fit_map(P, y, multiclass=multiclass).apply(P)
        assert ((Q - R) ** 2).sum(axis=1).mean() < share * ((P - R) ** 2).sum(axis=1).mean()


def test_one_row_is_enough():
    for y in (0, 1):
        low, high = ends(fit_map(both([0.3]), [y]), [0.2, 0.3, 0.4])
        # With the row and an added one there are two: both zeros, both ones, or one of each.
        assert low == pytest.approx([0.0, y / 2, y / 2])
        assert high == pytest.approx([(1 + y) / 2, (1 + y) / 2, 1.0])


def test_weights_that_are_no_counts_stand_for_as_many_rows_as_there_are():
    P, y = draw_predictions(60, 3, 2.0, 9)
    one, other = fit_map(P, y), fit_map(P, y, w=np.full(60, 0.25))
    assert other.apply(P) == pytest.approx(one.apply(P), abs=1e-12)
