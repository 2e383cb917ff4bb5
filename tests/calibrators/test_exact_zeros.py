"""Probabilities of exactly 0 and 1, as a forest of trees votes them: every calibrator stays finite and does no harm."""

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import GROUP_SETTINGS
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.cross_validation import row_losses
from trueodds.calibrators.llo import LloMap
from trueodds.calibrators.logistic import PlattMap, Sigmoid
from trueodds.calibrators.mcllo import MclloMap
from trueodds.calibrators.uniform_mixture import mix_with_uniform, uniform_share
from trueodds.calibrators.vector import VectorMap

# Fits of lines in log p take an exact zero for the floor (TN502): outcomes called impossible pull such a line far, and
# an exact zero stays one on it. They lose up to this much to probabilities left as they are; the others nothing.
LINES_LOSE = 0.12
LINES = {
    "temperature", "top_vs_all", "bias_corrected_temperature", "llo", "platt", "beta", "boldness", "evidential",
    "structured", "mcllo", "vector", "dirichlet", "matrix", "scaling_binning",
}  # fmt: skip
METHODS = [name for name in CALIBRATORS.names() if name != "prior_shift"]  # which needs to be told a target
CASES = [(name, k) for name in METHODS for k in (2, 3) if k == 2 or not CALIBRATORS.load(name).two_classes]


def forest(k, n=3000, trees=20, seed=0):
    """Shares of trees, with exact zeros and ones of which a tenth is wrong or nearly so."""
    rng = np.random.default_rng([seed, k])
    votes = np.stack([rng.multinomial(trees, p) for p in rng.dirichlet([0.3] * k, n)]) / trees
    truth = 0.9 * votes + 0.1 / k
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return votes, y


def loss(Q, y):
    """The mean log loss after mixing in the uniform."""
    return row_losses(mix_with_uniform(Q, uniform_share(len(Q))), np.eye(Q.shape[1])[y])[0].mean()


@pytest.mark.parametrize(("method", "k"), CASES)
def test_exact_zeros_and_ones_do_no_harm(method, k):
    P, y = forest(k)
    assert ((P == 0) & np.eye(k, dtype=bool)[y]).any()
    assert (P == 1).any()
    Q = to.fit(to.Predictions(y, P), method, **GROUP_SETTINGS.get(method, {})).predict_proba(P)
    assert np.isfinite(Q).all()
    assert Q.sum(axis=1) == pytest.approx(1)
    assert loss(Q, y) <= loss(P, y) + (LINES_LOSE if method in LINES else 1e-3)


@pytest.mark.parametrize(("method", "k"), [case for case in CASES if case[0] != "auto"])
def test_a_map_that_keeps_an_infinite_log_loss_says_so(method, k):
    P, y = forest(k, n=300)
    calibrator = to.fit(to.Predictions(y, P), method, **GROUP_SETTINGS.get(method, {}))
    Q = calibrator.predict_proba(P)
    texts = [note.text for note in calibrator.notes if note.code == "TN505"]
    assert bool(texts) == (Q == 0).any()
    n_observed = (Q[np.arange(len(y)), y] == 0).sum()
    if n_observed:
        assert texts[0].endswith(f"is infinite, as it is in {n_observed} of these rows.")


REVERSED = ("llo", "platt", "mcllo", "vector", "bias_corrected_temperature", "evidential", "scaling_binning")


MAPS_OF_TWO_CLASSES = {  # logit q = slope · log(p / (1 − p)), with the smallest probability of the fit
    "llo": lambda slope: LloMap(0.0, slope, min_prob=0.001),
    "platt": lambda slope: PlattMap((Sigmoid(slope, 0.0, min_prob=0.001),)),
    "mcllo": lambda slope: MclloMap(np.zeros(1), np.array([slope]), 0, 0.001),
    "vector": lambda slope: VectorMap(np.full(2, slope), np.zeros(2), 0.001),
}


ZERO_NOTES = ["isotonic", "centered_isotonic", "irm", "irova_ts", "enir", "histogram", "scaling_binning", "temperature"]


@pytest.mark.parametrize("method", ZERO_NOTES)
def test_notes_do_not_count_rows_of_weight_zero(method):
    P = forest(3, n=200)[0]
    y = P.argmax(axis=1)
    weight = (np.arange(200) % 2).astype(float)
    weighted, dropped = to.fit(to.Predictions(y, P, weight=weight), method), to.fit(to.Predictions(y, P)[1::2], method)
    counted = [[note for note in fit.notes if note.code[:3] == "TN5"] for fit in (weighted, dropped)]
    assert counted[0] == counted[1] != []


@pytest.mark.parametrize("build_map", MAPS_OF_TWO_CLASSES.values(), ids=MAPS_OF_TWO_CLASSES)
def test_only_a_negative_slope_raises_a_zero_to_the_smallest_probability_of_the_fit(build_map):
    # logit q = −log(1 / .001) = −6.91, so q = 1/1001, for a negative slope; a positive one keeps (0, 1).
    for slope, q, min_prob in ((-1.0, 1 / 1001, 0.001), (1.0, 1.0, 0.0)):
        calibration_map = build_map(slope)
        assert calibration_map.apply(np.array([[0.0, 1.0]]))[0] == pytest.approx([1 - q, q], rel=1e-12)
        (term,) = calibration_map.mixture_terms(2)
        assert term.min_prob_by_class.tolist() == [min_prob] * 2


@pytest.mark.parametrize("method", REVERSED)
def test_with_a_negative_slope_a_zero_is_what_the_fit_took_it_for(method, tmp_path):
    # Of 100 rows at .5 90 are events, of 100 rows at 1 only 70. The fit takes 1 − p = 0 for 1e-12.
    y, p = [1] * 90 + [0] * 10 + [1] * 70 + [0] * 30, [0.5] * 100 + [1.0] * 100
    calibrator = to.fit(to.Predictions(y, p), method)
    half, near, one = calibrator.predict_proba([0.5, 1 - 1e-12, 1.0])[:, 1]
    assert (half, near) == pytest.approx((0.9, 0.7), abs=0.02)
    assert one == pytest.approx(near, abs=1e-4)
    calibrator.save(tmp_path / "reversed.json")
    assert (to.load(tmp_path / "reversed.json").predict_proba(p) == calibrator.predict_proba(p)).all()
    assert "min_prob" not in calibrator.to_dict()["parameters"] or method in {"mcllo", "vector", REVERSED[4]}


def test_a_reversed_map_keeps_another_smallest_probability_of_its_fit(tmp_path):
    y, p = [1] * 90 + [0] * 10 + [1] * 70 + [0] * 30, [0.5] * 100 + [1.0] * 100
    for method in ("llo", "platt", "evidential"):
        calibrator = to.fit(to.Predictions(y, p), method, min_prob=1e-6)
        assert calibrator.predict_proba([1.0])[0, 1] == pytest.approx(0.7, abs=0.01)
        calibrator.save(tmp_path / "reversed.json")
        assert to.load(tmp_path / "reversed.json").predict_proba([1.0]) == pytest.approx(
            calibrator.predict_proba([1.0])
        )


@pytest.mark.parametrize("method", METHODS)
def test_a_tiny_probability_of_an_observed_class_is_fitted(method):
    k = 2 if CALIBRATORS.load(method).two_classes else 3
    y = np.arange(200) % k
    P = np.full((200, k), 0.2 / (k - 1))
    P[np.arange(200), y] = 0.8
    for p in (1e-320, 1e-160, 1e-100):
        P[0] = [p, *[1 / (k - 1)] * (k - 1)]
        fitted = to.fit(to.Predictions(y, P), method, **GROUP_SETTINGS.get(method, {}))
        assert np.isfinite(fitted.predict_proba(P)).all()


@pytest.mark.slow
def test_auto_never_keeps_an_infinite_log_loss_of_a_forest():
    for seed in range(5):
        for k in (2, 4):
            P, y = forest(k, n=300, seed=seed)
            fresh, _ = forest(k, n=300, seed=seed + 100)
            calibrator = to.fit(to.Predictions(y, P), "auto")
            assert (calibrator.predict_proba(np.concatenate([P, fresh])) > 0).all()


@pytest.mark.parametrize("k", [2, 3])
def test_a_spline_maps_an_exact_zero_to_the_event_rate_of_exact_zeros(k):
    # The line at the end of the curve led exact zeros to 0 or to 1: in log loss 2 to 6 in place of .4.
    (P, y), (fresh, y_fresh) = forest(k), forest(k, seed=1)
    calibrator = to.fit(to.Predictions(y, P), "spline")
    Q = calibrator.predict_proba(fresh)
    assert -np.log(Q[np.arange(len(Q)), y_fresh]).mean() < loss(fresh, y_fresh) - 0.05
    zero = fresh[:, 0] == 0
    assert Q[zero, 0].mean() == pytest.approx((y_fresh[zero] == 0).mean(), abs=0.03)


def test_a_saved_spline_keeps_its_floor(tmp_path):
    P, y = forest(2)
    calibrator = to.fit(to.Predictions(y, P), "spline")
    calibrator.save(tmp_path / "spline.json")
    assert (to.load(tmp_path / "spline.json").predict_proba(P) == calibrator.predict_proba(P)).all()
