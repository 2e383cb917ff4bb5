"""The table of shifts and slopes: its numbers, its words, when it withholds them, and that a file keeps it."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, t

import trueodds as to
from tests.calibrators.linear import reference
from tests.calibrators.rows import both, draw_predictions, labels, one_hot
from trueodds.api import test
from trueodds.calibrators import MCLLO
from trueodds.calibrators._glm.parameter_covariance import (
    IndependentUnits,
    ScoreVectors,
    jackknife_covariance,
    sandwich_covariance,
)
from trueodds.calibrators._glm.parameter_uncertainty import (
    NO_STD_ERROR_REASONS,
    STD_ERROR_METHODS,
    ParameterTable,
    ParameterUncertainty,
    format_probability,
)
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.llo import LloMap, LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec
from trueodds.core.errors import InputError
from trueodds.core.pvalues import holm
from trueodds.data.predictions import Predictions


def animals(**more):
    rows = reference()
    names = np.array(["airplane", "cat", "dog", "truck"])
    return Predictions(names[rows.Y.argmax(axis=1)], rows.P, classes=names.tolist(), **more)


def table(tau, gamma, se_tau, se_gamma, classes=("cat", "truck", "dog"), baseline=1):
    """One class with these numbers; the others, if any, as they were said."""
    m = len(classes) - 1
    V = np.tile(np.diag([1e-4, 1e-4]), (m, 1, 1))
    V[0] = np.diag([se_tau**2, se_gamma**2])
    taus, gammas = np.r_[tau, np.zeros(m - 1)], np.r_[gamma, np.ones(m - 1)]
    return ParameterTable(classes, baseline, taus, gammas, ParameterUncertainty("curvature", V, 10.0, 2 * m, 100.0))


def sentence(*numbers, **more):
    return next(line for line in table(*numbers, **more).lines() if ": where" in line)


# Numbers


def test_two_scores_have_errors_by_hand():
    # Of four said .9 three came, of four said .1 two. Log odds L₁ = log 3 and L₂ = 0 have variances 1/(n q(1 − q)) of
    # 4/3 and 1. With a = log 9, τ = (L₁ + L₂)/2 and γ = (L₁ − L₂)/2a: variances (4/3 + 1)/4 and (4/3 + 1)/4a²,
    # covariance (4/3 − 1)/4a. Gain: 2 [3 log .75 + log .25 + 4 log .5 − 3 log .9 − 3 log .1 − 2 log .9] nats.
    a, preds = np.log(9), Predictions([1, 1, 1, 0, 1, 1, 0, 0], [0.9] * 4 + [0.1] * 4)
    gain = 2 * (np.log(0.75**3 * 0.25 * 0.5**4) - np.log(0.9**3 * 0.1 * 0.1**2 * 0.9**2))
    for name, settings in (("llo", {}), ("mcllo", {"baseline": 0})):
        uncertainty = to.fit(preds, name, **settings).calibration_map.uncertainty
        want = np.array([[7 / 12, 1 / (12 * a)], [1 / (12 * a), 7 / (12 * a * a)]])
        assert uncertainty.covariance[0] == pytest.approx(want, abs=1e-9)
        assert (uncertainty.std_error_method, uncertainty.rank, uncertainty.n) == ("curvature", 2, 8)
        assert uncertainty.likelihood_ratio == pytest.approx(gain, abs=1e-9)
        assert uncertainty.pvalue == pytest.approx(np.exp(-gain / 2))  # χ² with two degrees of freedom
        assert uncertainty.posterior == pytest.approx(1 / (1 + np.exp(gain / 2 - np.log(8))))  # exp of half of 2 log 8


def test_the_ends_of_delta_are_those_of_its_logarithm():
    low, high = table(np.log(0.7), 0.68, 0.1, 0.03).intervals()[0][0]
    assert (low, high) == pytest.approx((0.7 * np.exp(-0.19599640), 0.7 * np.exp(0.19599640)))
    assert high - 0.7 > 0.7 - low


def test_the_table_says_what_the_test_says():
    rows = reference()
    preds = Predictions(rows.Y.argmax(axis=1), rows.P)
    result, parts = fit(MclloSpec(), preds).calibration_map, test.test(preds, "mcllo").parts
    shown = ParameterTable(tuple(range(4)), 3, result.tau, result.gamma, result.uncertainty)
    for i in range(3):
        want = parts[f"class:{i}"]
        assert shown.std_errors[i] == pytest.approx([want["tau_se"], want["gamma_se"]], rel=1e-7)
        assert shown.pvalues[i] == pytest.approx(want["pvalue"], rel=1e-5)
        assert holm(shown.pvalues.tolist())[i] == pytest.approx(want["holm"], rel=1e-5)
        delta, gamma = (ends[i] for ends in shown.intervals())
        assert delta == pytest.approx([want["delta_low"], want["delta_high"]], rel=1e-7)
        assert gamma == pytest.approx([want["gamma_low"], want["gamma_high"]], rel=1e-7)
    assert result.uncertainty.likelihood_ratio == pytest.approx(parts["joint"]["likelihood_ratio"], rel=1e-9)
    assert result.uncertainty.posterior == pytest.approx(parts["joint"]["posterior"], rel=1e-7)


def test_the_columns_are_aligned():
    head, *rows = fit(MclloSpec(), animals()).summary().split("\n")[2:6]
    assert [row.split()[0] for row in rows] == ["airplane", "cat", "dog"]
    assert head.split("  ")[0] == "against truck"
    assert {len(row) for row in rows} == {len(head)}
    assert rows[0].split("  ")[-1].strip() == "1.47e-24"


# Words


@pytest.mark.parametrize(
    ("numbers", "phrase"),
    [
        (
            (np.log(0.7), 0.68, 0.05, 0.02),
            "cat is observed 0.70× [0.63, 0.77] as often as truck; the model is overconfident",
        ),
        ((np.log(0.7), 0.68, 0.05, 0.02), "γ = 0.68 [0.64, 0.72]."),
        (
            (np.log(0.9), 0.68, 0.2, 0.02),
            "0.90× [0.61, 1.33] as often as truck, which is consistent with chance; the model is over",
        ),
        ((0.5, 1.4, 0.05, 0.1), "the model is underconfident (its odds are not extreme enough), γ = 1.40 [1.20, 1.60]"),
        ((0.5, 1.1, 0.05, 0.1), "its slope is consistent with a calibrated model, γ = 1.10 [0.90, 1.30]"),
        ((0.5, 0.3, 0.05, 0.2), "overconfident, and perhaps separates the two no better than chance, γ = 0.30"),
        ((0.5, -0.1, 0.05, 0.2), "overconfident, and perhaps its ranking is reversed, γ = -0.10"),
        (
            (0.5, -0.8, 0.05, 0.2),
            "the ranking of the model is reversed: what it predicts as likelier is observed less often, γ = -0.80",
        ),
        (
            (0.5, 0.4, 0.05, 0.5),
            "exclude neither a calibrated slope (γ = 1) nor an uninformative model (γ = 0), γ = 0.40",
        ),
    ],
)
def test_each_row_is_put_in_words(numbers, phrase):
    text = sentence(*numbers)
    assert text.startswith("cat against truck: where the model predicts both as equally likely, cat is observed")
    assert phrase in text


def test_an_end_beside_one_does_not_read_as_one():
    # 1.96 standard errors of .0182 leave the upper end at .9957, and the slope is too small beyond chance.
    assert "γ = 0.960 [0.924, 0.996]" in sentence(0.5, 0.96, 0.05, 0.0182)


def test_what_chance_explains_alone_but_not_jointly_is_noted():
    V = np.array([[[0.04, 0.0195], [0.0195, 0.01]]])  # a correlation of .975: 1.5 standard errors each, either way
    shown = ParameterTable(
        ("no", "yes"), 0, np.array([0.3]), np.array([0.85]), ParameterUncertainty("curvature", V, 9.0, 2, 50.0)
    )
    # χ² = (1.5² + 1.5² + 2·.975·1.5²)/(1 − .975²) = 180, p = exp(−90).
    assert shown.pvalues[0] == pytest.approx(np.exp(-90), rel=1e-9)
    assert "which is consistent with chance" in shown.lines()[2]
    assert shown.lines()[2].endswith("; jointly the two are significant, p = 8.19e-40.")


def test_of_two_classes_one_is_the_event():
    lines = table(0.5, 0.7, 0.1, 0.1, classes=("ham", "spam"), baseline=0).lines()
    assert lines[0].startswith("against ham (other)")
    assert lines[2].startswith("spam (event) against ham (other): where")


def test_of_two_classes_the_intercept_has_an_interval_and_the_pvalue_is_not_adjusted():
    # 0.5 ± 1.96 · 0.1, and the only hypothesis is its own family.
    lines = table(0.5, 0.7, 0.1, 0.1, classes=("ham", "spam"), baseline=0).lines()
    assert lines[0].endswith("Wald p (δ = γ = 1)")
    assert "calibration intercept log δ = 0.500 [0.304, 0.696], s.e. 0.100" in lines[3]
    assert "Holm" not in "".join(lines)
    several = table(0.5, 0.7, 0.1, 0.1, classes=("a", "b", "c")).lines()
    assert several[0].endswith("Holm's p")
    assert "calibration intercept" not in "".join(several)


def test_names_are_kept_to_their_place():
    lines = table(0.5, 0.7, 0.1, 0.1, classes=("a\nb\x1b[31m", "c" * 50, "d")).lines()
    assert lines[0].startswith("against " + "c" * 23 + "…  ")
    assert lines[1].startswith(r"a\nb\x1b[31m")


def test_of_many_classes_the_most_doubtful_are_shown():
    m = 30
    V = np.tile(np.diag([0.01, 0.01]), (m, 1, 1))
    shift = np.where(np.arange(m) % 3 == 0, 0.0, 0.5)  # twenty have five standard errors, ten none
    lines = ParameterTable(
        tuple(range(m + 1)), m, shift, np.ones(m), ParameterUncertainty("curvature", V, 9.0, 60, 99.0)
    ).lines()
    assert [line.split("  ")[0] for line in lines[1:21]] == [f"class {j}" for j in range(m) if j % 3]
    assert lines[21] == "… and 10 more classes with larger p-values."
    none = ParameterTable(tuple(range(m + 1)), m, shift, np.ones(m), ParameterUncertainty("infinite")).lines()
    assert none[21] == "… and 10 more classes."
    one = ParameterTable(tuple(range(22)), 21, shift[:21], np.ones(21), ParameterUncertainty("infinite")).lines()
    assert one[21] == "… and 1 more class."


# Where the numbers come from


def test_no_weights_clusters_votes_or_penalty_give_the_curvature_and_a_ratio():
    rows, calibrators = reference(), {}
    calibrators["curvature"] = fit(MclloSpec(), animals())
    calibrators["weights"] = fit(MclloSpec(), animals(weight=np.random.default_rng(0).random(400)))
    calibrators["clusters"] = fit(MclloSpec(), animals(cluster=np.arange(400) // 5))
    calibrators["votes"] = fit(MclloSpec(), Predictions(0.9 * rows.Y + 0.025, rows.P))
    for errors, result in calibrators.items():
        assert result.calibration_map.uncertainty.std_error_method == errors
        assert (result.calibration_map.uncertainty.likelihood_ratio is None) == (errors != "curvature")
        shown = [line for line in result.summary().split("\n") if "likelihood ratio" in line]
        assert len(shown) == 1
        assert shown[0].startswith(f"With {errors}, standard errors") == (errors != "curvature")
        assert ("on the rows of the fit: likelihood ratio 146" in shown[0]) == (errors == "curvature")


@pytest.mark.parametrize("cluster", [None, np.arange(400) // 5])
def test_with_a_penalty_the_curvature_is_the_penalized_one(cluster):
    # As strong a pull as a hundred thousand nats leaves a variance of 1/2λ and no ratio.
    plain = fit(MclloSpec(penalty=1e5), animals(cluster=cluster))
    if cluster is None:
        assert plain.calibration_map.uncertainty.covariance == pytest.approx(
            np.tile(np.eye(2) / 2e5, (3, 1, 1)), rel=0.05, abs=1e-7
        )
    assert plain.calibration_map.uncertainty.likelihood_ratio is None
    assert "the penalized Hessian" in plain.summary()
    assert ("in the sandwich too" in plain.summary()) == (cluster is not None)


def test_copies_of_rows_in_clusters_tell_no_more_than_the_rows():
    # The variance of the scores is the same; it has the factor G/(G − 1) of clusters.
    P, y = draw_predictions(200, 3, 1.5, 1)
    twice = np.repeat(np.arange(200), 2)
    one = fit(LloSpec(), Predictions(y == 0, P[:, 0], cluster=np.arange(200))).calibration_map.uncertainty.covariance
    two = fit(LloSpec(), Predictions(y[twice] == 0, P[twice, 0], cluster=twice)).calibration_map.uncertainty.covariance
    assert two == pytest.approx(one, rel=1e-7)
    one = fit(MclloSpec(), Predictions(y, P, cluster=np.arange(200))).calibration_map.uncertainty.covariance
    two = fit(MclloSpec(), Predictions(y[twice], P[twice], cluster=twice)).calibration_map.uncertainty.covariance
    assert two == pytest.approx(one, rel=1e-7)


def test_weights_and_clusters_by_hand():
    # A shift alone: of p = ½ with weights ½, 1½, ½, 1½ half came by weight, so q = ½ and H = ¼ · 4 = 1. The model's
    # variance of Σ w(y − q) is ¼ Σw² = 5/4, and so is that of the shift. The slope is told by its penalty alone.
    w, y = np.array([0.5, 1.5, 0.5, 1.5]), np.array([1, 0, 0, 1])
    by_weights = sandwich_covariance(np.eye(2), np.diag([0.0, 0.25 * (w @ w)]))
    assert by_weights.covariance[1, 1] == pytest.approx(1.25)
    # Two clusters of two: scores −¼ + ¾ = ½ and −½, each with the curvature ½ of 1. Left out, the shift moves by
    # ½/(1 − ½) = 1; Σz² (G − 1)/G = 1. Each tells half, so that is worth both.
    scores = ScoreVectors(np.zeros((4, 1)), np.full((4, 1), 0.5), y[:, None], w)
    sandwich = jackknife_covariance(
        np.eye(2), np.eye(2), scores, IndependentUnits.from_clusters(w, np.array(["a", "a", "b", "b"]))
    )
    assert sandwich.covariance == pytest.approx(np.diag([0.0, 1.0]))
    assert sandwich.effective_units == pytest.approx(2)


@pytest.mark.slow
def test_weights_are_no_numbers_of_rows_unless_declared():
    # Of 200 calibrated sets with weights of 1 and 10, taken as 1 and 10 rows, four in five would be rejected.
    rng, rejected = np.random.default_rng(8), 0
    for _ in range(200):
        P, w = rng.dirichlet(np.ones(3), 200), rng.choice([1.0, 10.0], 200)
        uncertainty = (one := MCLLO().fit(P, labels(P, rng), w).calibrator_.calibration_map).uncertainty
        rejected += (ParameterTable((0, 1, 2), 2, one.tau, one.gamma, uncertainty).pvalues <= 0.05).sum()
        assert (uncertainty.std_error_method, uncertainty.n, uncertainty.likelihood_ratio) == ("weights", 200, None)
    assert binom.ppf(0.0005, 400, 0.03) <= rejected <= binom.ppf(0.9995, 400, 0.08)
    P, y = draw_predictions(150, 3, 1.5, 2)
    w = np.arange(150) % 3 + 1
    many = np.repeat(np.arange(150), w)
    one = to.fit(Predictions(y, P, weight=w), "mcllo", weight_kind="frequency").calibration_map.uncertainty
    other = MclloSpec().fit(P[many], np.eye(3)[y[many]], np.ones(len(many))).uncertainty
    assert (one.std_error_method, one.n) == ("curvature", w.sum())
    assert one.covariance == pytest.approx(other.covariance, rel=1e-8)
    assert one.likelihood_ratio == pytest.approx(other.likelihood_ratio, rel=1e-9)


@pytest.mark.parametrize("penalty", [0, 0.5])
def test_equal_weights_say_nothing(penalty):
    P, y = draw_predictions(150, 3, 1.5, 2)
    plain, thrice = (
        MclloSpec(penalty=c * penalty).fit(P, one_hot(y, 3), np.full(150, c)).uncertainty for c in (1.0, 3.0)
    )
    assert (thrice.std_error_method, thrice.n) == ("curvature", 150)
    assert thrice.covariance == pytest.approx(plain.covariance, rel=1e-8)
    assert thrice.likelihood_ratio == (None if penalty else pytest.approx(plain.likelihood_ratio, rel=1e-9))


def test_the_test_and_the_table_have_one_sandwich_for_weights():
    P, y = draw_predictions(300, 3, 1.5, 4)
    preds = Predictions(y, P, weight=np.random.default_rng(4).lognormal(0, 1.2, 300))
    parts, V = test.test(preds, "mcllo").parts, to.fit(preds, "mcllo").calibration_map.uncertainty.covariance
    # A fit scales the weights to a mean of 1, on which the sandwich does not depend.
    for i in range(2):
        assert np.sqrt(V[i].diagonal()) == pytest.approx([parts[f"class:{i}"][f"{a}_se"] for a in ("tau", "gamma")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["curvature", "weights", "clusters"])
def test_intervals_hold_the_truth_as_often_as_they_say(kind):
    # The interval of γ of one class in 300 data sets of 600 rows: Binomial(300, .95), inside its 99.9 % range, and one
    # point below, as the sandwich of 60 clusters is that much too narrow.
    rng, n_covered = np.random.default_rng(7), 0
    true = MclloMap(np.array([0.3, -0.2]), np.array([0.6, 0.8]), 2, 1e-12)
    for _ in range(300):
        P = rng.dirichlet(np.ones(3), 600)
        Y = one_hot(labels(true.apply(P), rng), 3)
        w = rng.exponential(size=600) if kind == "weights" else np.ones(600)
        cluster = np.arange(600) // 10 if kind == "clusters" else None
        m = MclloSpec().fit_with_report(P, Y, w / w.mean(), cluster)[0]
        low, high = ParameterTable((0, 1, 2), 2, m.tau, m.gamma, m.uncertainty).intervals()[1][0]
        n_covered += low <= 0.6 <= high
    assert binom.ppf(0.0005, 300, 0.94) <= n_covered <= binom.ppf(0.9995, 300, 0.95)


# Where there are none


def test_what_withholds_standard_errors_is_noted():
    P, y = draw_predictions(300, 3, 1.5, 3)
    clustered, flat = (
        Predictions(y, P, cluster=np.arange(300) // 75),
        Predictions([0, 1, 2] * 4, [[0.5, 0.3, 0.2]] * 12),
    )
    calibrators = {
        "infinite": fit(MclloSpec(), Predictions(P.argmax(axis=1), P)),
        "absent": fit(MclloSpec(), Predictions(y[y < 2], P[y < 2], classes=range(3))),
        "few": fit(MclloSpec(), clustered),
        "untold": fit(MclloSpec(), flat),
    }
    for errors, result in calibrators.items():
        assert (result.calibration_map.uncertainty.std_error_method, result.calibration_map.uncertainty.covariance) == (
            errors,
            None,
        )
        assert ("penalty=0.5" in result.summary()) == (errors != "few")
        assert ("Use more of them" in result.summary()) == (errors == "few")
        assert "No standard errors" in result.summary()
        assert "confident" not in result.summary()
    assert (
        calibrators["untold"].calibration_map.uncertainty.rank == 2
    )  # two shifts of four numbers, whose gain χ² with 2 df judges
    assert "χ² with 2 degrees of freedom" in calibrators["untold"].summary()
    assert (
        MclloMap(np.zeros(2), np.ones(2), 2, 1e-12)
        .table((0, 1, 2))[-1]
        .startswith("This map was saved without standard errors")
    )


def test_a_slope_that_only_the_penalty_holds_has_no_sandwich():
    # Where x = 0 its scores are 0, as would be its standard error;
    # where x is another number, they are those of the shift.
    P, w = np.tile([0.6, 0.4], (20, 1)), np.linspace(0.5, 1.5, 20)
    uncertainty = MclloSpec(penalty=0.5, baseline=1).fit(0 * P + 0.5, one_hot(np.arange(20) % 2), w).uncertainty
    assert (uncertainty.std_error_method, uncertainty.covariance) == ("untold", None)
    assert MclloSpec(penalty=0.5).fit(P, one_hot(np.arange(20) % 2), w).uncertainty.std_error_method == "untold"


def test_a_penalty_is_advised_where_there_is_none_and_it_can_help():
    w = np.linspace(0.5, 1.5, 20)
    pulled = fit(MclloSpec(penalty=0.5), Predictions(np.arange(20) % 2, np.full(20, 0.5), weight=w))
    assert "Use rows with other predictions." in pulled.summary()
    assert "penalty=0.5)" not in pulled.summary().split("\n", 2)[2]
    separated = fit(LloSpec(), Predictions([0, 0, 1, 1], both([0.2, 0.3, 0.7, 0.9])))
    assert 'to.fit(preds, "mcllo", penalty=0.5), the same map with a penalty, has finite' in separated.summary()


# More words


def test_a_shift_where_no_prediction_was_is_an_extrapolation():
    # Class 1 against 0 lies between 1 : 9 and 4 : 6, class 2 against 0 on both sides of even odds.
    P = np.array([[0.6, 0.2, 0.2], [0.3, 0.1, 0.6], [0.5, 0.1, 0.4], [0.2, 0.1, 0.7]] * 10)
    y = np.random.default_rng(9).permutation(np.arange(40) % 3)
    result = fit(MclloSpec(baseline=0), Predictions(y, P))
    one, two = [line for line in result.summary().split("\n") if ": where" in line]
    assert result.calibration_map.uncertainty.both_signs.tolist() == [False, True]
    assert "(an extrapolation: it never predicts them as equally likely)" in one
    assert "extrapolation" not in two


def test_few_units_are_noted_and_no_probability_is_quite_certain():
    # Six clusters of thirty: intervals are by t with fewer than five degrees of freedom.
    P, y = draw_predictions(180, 2, 1.0, 3)
    result = fit(MclloSpec(), Predictions(y, P, cluster=np.arange(180) // 30))
    uncertainty = result.calibration_map.uncertainty
    assert 2 < uncertainty.effective_units <= 6
    assert f"The effective number of clusters is only {uncertainty.effective_units:.3g}:" in result.summary()
    assert uncertainty.interval_factor == pytest.approx(t.ppf(0.975, uncertainty.effective_units - 1))
    assert (format_probability(1.0), format_probability(0.0), format_probability(0.5)) == (">0.9999", "<0.0001", "0.5")


def test_maps_without_a_table_say_so_in_the_same_words():
    for m in (LloMap(0.1, 0.9), MclloMap(np.array([0.1]), np.array([0.9]), 0, 1e-12)):
        assert m.table(("no", "yes"))[-1] == "This map was saved without standard errors. Fit it again to get them."


# Saved


def results():
    P, y = draw_predictions(120, 3, 1.5, 5)
    yield fit(MclloSpec(), Predictions(y, P, classes=["a", "b", "c"]))
    yield fit(MclloSpec(penalty=0.5), Predictions(y, P, weight=y + 0.5))
    yield fit(MclloSpec(), Predictions(y, P, cluster=np.arange(120) // 4))
    yield fit(MclloSpec(), Predictions(P.argmax(axis=1), P))
    yield fit(MclloSpec(), Predictions([0, 1, 2] * 4, [[0.5, 0.3, 0.2]] * 12))
    yield fit(LloSpec(), Predictions(y == 0, P[:, 0]))
    yield fit(LloSpec(), Predictions([1, 1, 1, 0], [0.9] * 4))


def test_a_saved_calibrator_prints_the_same_summary():
    for result in results():
        restored = calibrator_from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
        assert restored.summary() == result.summary()
        assert restored.to_dict() == result.to_dict()


def test_files_from_before_there_was_a_table_are_read():
    for result in (fit(MclloSpec(), animals()), fit(LloSpec(), Predictions([0, 1, 1, 0], [0.3, 0.4, 0.8, 0.6]))):
        document = result.to_dict()
        del document["parameters"]["certainty"]
        restored = calibrator_from_dict(document)
        assert restored.to_dict() == document
        assert "likelihood ratio" not in restored.summary()


def test_a_file_that_was_saved_once_keeps_its_table():
    saved = json.loads((Path(__file__).parent / "saved" / "mcllo.json").read_text(encoding="utf-8"))
    lines = calibrator_from_dict(saved["calibrator"]).summary().split("\n")
    row = "class 0 0.885 [0.382, 2.054] 0.429 0.788 [0.441, 1.134] 0.177 0.4517 0.6935"
    assert " ".join(lines[3].split()) == row
    assert "likelihood ratio 1.9589, χ² with 4 degrees of freedom, p = 0.7433" in lines[-1]


V = [[[0.01, 0.001], [0.001, 0.04]], [[0.01, 0.0], [0.0, 0.04]]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"errors": "none"},
        {"errors": ["curvature"]},
        {"errors": "many"},  # and covariances
        {"covariance": None},
        {"covariance": V[:1]},
        {"covariance": [V[0], [[0.01, 0.0]]]},
        {"covariance": [V[0], [[0.01, 0.0], [0.0, -0.04]]]},
        {"covariance": [V[0], [[0.01, 0.0], [0.001, 0.04]]]},
        {"covariance": [V[0], [[0.01, 0.02], [0.02, 0.04]]]},  # a correlation of 1
        {"covariance": [V[0], [[0.01, "0"], [0.0, 0.04]]]},
        {"ratio": -1.0},
        {"ratio": True},
        {"rank": 5},
        {"rank": 0},
        {"rank": 2.5},
        {"n": 0},
        {"n": 10**400},
        {"penalized": 1},
        {"penalized": True},  # and a ratio
        {"errors": "weights"},  # and a ratio
        {"units": 20.0},  # and no clusters
        {"errors": "clusters", "ratio": None, "units": 2.0},
        {"errors": "clusters", "ratio": None, "units": "many"},
        {"even": [True]},
        {"even": [1, 0]},
        {"more": 1},
    ],
)
def test_a_table_that_none_could_be_is_refused(wrong):
    good = ParameterUncertainty("curvature", np.array(V), 12.0, 4, 100.0).to_dict()
    assert ParameterUncertainty.from_dict(good, 3).to_dict() == good
    with pytest.raises(InputError, match="TO505"):
        ParameterUncertainty.from_dict(good | wrong, 3)


def test_every_way_to_be_unsure_has_words():
    for errors in NO_STD_ERROR_REASONS:
        assert (
            "No standard errors"
            in ParameterTable((0, 1), 0, np.zeros(1), np.ones(1), ParameterUncertainty(errors)).lines()[2]
        )
    for errors in STD_ERROR_METHODS:
        uncertainty = ParameterUncertainty(errors, np.array(V[:1]), None, 2, 10.0)
        lines = ParameterTable((0, 1), 0, np.zeros(1), np.ones(1), uncertainty).lines()
        assert len(lines) == 5 + (errors != "curvature")
