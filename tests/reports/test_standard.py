"""Are level, slope and discrimination what other ways of computing them say, and do their intervals cover?"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from scipy.stats import binom, mannwhitneyu

import trueodds as to
from tests.reports.example import typed
from trueodds.estimators._glm.calibration_exponent import calibration_exponent
from trueodds.hypotests.cox import Cox
from trueodds.lenses.classes import Canonical
from trueodds.lenses.view import View
from trueodds.reports.standard_measures import auc_with_se, standard_measures, standard_notes
from trueodds.reports.text.group_tables import group_measure_table
from trueodds.resampling.draws import Bootstrap


def two_classes(seed, n=400, slope=1.0, shift=0.0, **more):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    return to.Predictions((rng.random(n) < expit(slope * x + shift)).astype(int), expit(x), **more)


def of(preds):
    return {measure.name: measure for measure in standard_measures(preds, 0.95, np.random.default_rng(0))}


def test_two_classes_have_all_five_and_the_others_a_level_and_a_slope():
    rng = np.random.default_rng(0)
    P = softmax(rng.normal(0, 1, (200, 3)), axis=1)
    assert list(of(two_classes(0))) == [
        "calibration_intercept", "calibration_slope", "observed_to_expected", "ici", "auc",
    ]  # fmt: skip
    assert list(of(to.Predictions(rng.integers(0, 3, 200), P))) == ["calibration_in_the_large", "calibration_slope"]
    assert standard_measures(to.Predictions.from_multilabel(P > 0.4, P), 0.95, rng) == ()


def test_the_slope_and_the_shift_are_those_of_a_likelihood_maximized_otherwise():
    preds = two_classes(1, slope=0.6, shift=0.4)
    x, y = np.log(preds.p / (1 - preds.p)), preds.y

    def loss(beta):
        eta = beta[0] + beta[1] * x
        return float((np.logaddexp(0, eta) - y * eta).sum())

    optimum = minimize(loss, [0.0, 1.0], method="BFGS", tol=1e-10).x
    large = minimize(lambda b: loss([b[0], 1.0]), [0.0], method="BFGS", tol=1e-10).x
    measures = of(preds)
    assert measures["calibration_slope"].value == pytest.approx(optimum[1], abs=1e-5)
    assert measures["calibration_intercept"].value == pytest.approx(large[0], abs=1e-5)


def test_the_power_of_several_classes_is_the_one_that_fits_best():
    rng = np.random.default_rng(2)
    z = rng.normal(0, 1.5, (500, 4))
    y = (softmax(0.7 * z, axis=1).cumsum(axis=1)[:, :-1] <= rng.random((500, 1))).sum(axis=1)
    (view,) = Canonical().views(to.Predictions(y, softmax(z, axis=1)))
    exponent = calibration_exponent(view)
    beta, error = exponent.value, exponent.se
    optimum = minimize(lambda b: -log_softmax(b[0] * z, axis=1)[np.arange(500), y].sum(), [1.0], tol=1e-10).x[0]
    assert beta == pytest.approx(optimum, abs=1e-5)
    assert abs(beta - 0.7) < 4 * error < 0.4
    (view,) = Canonical().views(to.Predictions.from_logits(y, z))
    assert calibration_exponent(view).value == pytest.approx(beta, rel=1e-9)


def test_the_area_is_that_of_mann_and_whitney_and_its_error_delongs():
    rng = np.random.default_rng(3)
    p, y = np.round(rng.random(60), 1), rng.integers(0, 2, 60)
    area, error = auc_with_se(View(p, y))
    a, b = p[y == 1], p[y == 0]
    assert area == pytest.approx(mannwhitneyu(a, b).statistic / (len(a) * len(b)), rel=1e-12)
    beats = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    variance = beats.mean(axis=1).var(ddof=1) / len(a) + beats.mean(axis=0).var(ddof=1) / len(b)
    assert error == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert np.isnan(auc_with_se(View(p, np.ones(60)))[0])


def test_a_weight_of_two_is_two_rows_in_the_area():
    rng = np.random.default_rng(4)
    p, y, w = rng.random(40), rng.integers(0, 2, 40), rng.integers(1, 4, 40)
    assert auc_with_se(View(p, y, w))[0] == pytest.approx(
        auc_with_se(View(np.repeat(p, w), np.repeat(y, w)))[0], rel=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(clusters):
    sets, slopes, areas = 150, 0, 0
    rng = np.random.default_rng(9)
    x = rng.normal(0, 1.5, 400_000)
    truth = auc_with_se(View(expit(x), (rng.random(len(x)) < expit(0.7 * x)).astype(float)))[0]
    for seed in range(sets):
        preds = two_classes(seed, slope=0.7)
        if clusters:  # every row three times: three times the rows and no more to be known
            three = np.repeat(np.arange(400), 3)
            preds = to.Predictions(preds.y[three], preds.p[three], cluster=three)
        view = View(preds.p, preds.y)
        slope = Cox().coefficients(view, preds.cluster)["slope"]
        slopes += abs(slope.value - 0.7) <= 1.96 * slope.se
        value, error = auc_with_se(view, preds.cluster)
        areas += abs(value - truth) <= 1.96 * error
    min_covered = binom.ppf(0.0005, sets, 0.93)
    assert slopes >= min_covered
    assert areas >= min_covered


def test_probabilities_of_0_and_1_have_no_slope_and_all_the_rest():
    preds = to.Predictions([0, 1, 1, 0] * 10, [0.0, 1.0, 0.6, 0.3] * 10)
    measures = of(preds)
    assert measures["calibration_slope"].value is None
    assert measures["auc"].value == 1.0
    assert measures["observed_to_expected"].value == pytest.approx(20 / 19)


def test_an_exact_zero_leaves_no_slope_and_a_note_says_so() -> None:
    p = np.array([0.0, 0.2, 0.5, 0.9] * 25)
    preds = to.Predictions((np.random.default_rng(0).random(100) < p).astype(int), p)
    assert of(preds)["calibration_slope"].value is None
    (note,) = standard_notes(preds)
    assert note.code == "TN268"
    assert "25 of 100 probabilities are exactly 0 or 1" in note.text
    assert note in to.audit(preds, rng=0).notes
    assert standard_notes(to.Predictions([0, 1], [0.2, 0.9])) == []


def test_no_slope_where_every_answer_is_right() -> None:
    # Newton's steps rise forever: wherever they were stopped, that was the slope, with an interval of no width.
    P = np.random.default_rng(0).dirichlet([0.3] * 3, 200)
    slope = of(to.Predictions(P.argmax(axis=1), P))["calibration_slope"]
    assert (slope.value, slope.interval) == (None, None)
    slope = of(to.Predictions(P.argmin(axis=1), P))["calibration_slope"]
    assert (slope.value, slope.interval) == (None, None)


def test_one_impossible_outcome_leaves_no_slope_of_several_classes() -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet([1.0] * 3, 500)
    y = (P.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    assert of(to.Predictions(y, P))["calibration_slope"].value == pytest.approx(1.0, abs=0.3)
    P[0], y[0] = [0, 0.5, 0.5], 0
    preds = to.Predictions(y, P)
    assert of(preds)["calibration_slope"].value is None
    assert [note.code for note in standard_notes(preds)] == ["TN268"]
    assert standard_notes(to.Predictions(y[1:], P[1:])) == []


def test_an_area_of_1_and_a_single_event_have_no_interval_and_none_leaves_the_unit() -> None:
    separated = of(to.Predictions([0] * 5 + [1] * 5, np.linspace(0.05, 0.95, 10)))["auc"]
    assert (separated.value, separated.interval) == (1.0, None)
    assert of(to.Predictions([0] * 30 + [1], np.linspace(0.05, 0.9, 31)))["auc"].interval is None
    near = of(to.Predictions([0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1], np.linspace(0.05, 0.95, 12)))["auc"]
    assert 0 < near.interval.low < near.value < near.interval.high < 1


def test_answers_that_are_all_right_leave_the_level_its_chance() -> None:
    preds = to.Predictions.from_confidence([0.9] * 20, [True] * 20)
    level = of(preds)["calibration_in_the_large"]
    assert level.value == pytest.approx(0.1)  # accuracy 1 − mean confidence .9
    assert level.interval.high - level.value == pytest.approx(1.96 * np.sqrt(0.09 / 20), rel=1e-3)


@pytest.mark.slow
def test_one_cluster_has_no_interval_and_few_have_long_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    one = of(two_classes(0, cluster=np.zeros(400, dtype=int)))
    assert all(measure.interval is None for name, measure in one.items() if name != "ici")
    monkeypatch.setattr("trueodds.reports.standard_measures.MAX_ICI_ROWS", 0)  # its bootstrap is not needed below
    sets, missed = 200, {"calibration_slope": 0, "calibration_intercept": 0}
    for seed in range(sets):
        measures = of(two_classes(seed, n=200, cluster=np.arange(200) % 4))
        for name in missed:
            ends = measures[name].interval
            missed[name] += not ends.low <= measures[name].ideal <= ends.high
    assert max(missed.values()) <= binom.ppf(0.9995, sets, 0.05)


def test_standard_errors_of_votes_follow_their_residuals() -> None:
    # The slope of 20 votes a row varies far less than that of one label a row.
    slopes, errors = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.normal(0, 1.5, 200)
        votes = rng.binomial(20, expit(x))
        slope = Cox().coefficients(View(expit(x), votes / 20))["slope"]
        slopes.append(slope.value)
        errors.append(slope.se)
    assert np.mean(errors) == pytest.approx(np.std(slopes), rel=0.35)


def test_an_exact_zero_leaves_the_o_e_ratio_its_interval() -> None:
    # The delta method for log(O/E): its standard error is √Σ(y − R·p)² / O, here with R = O/E.
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    y = (rng.random(5000) < p).astype(int)
    p[:50] = y[:50] = 0
    ratio = of(to.Predictions(y, p))["observed_to_expected"]
    R = y.sum() / p.sum()
    error = np.sqrt(((y - R * p) ** 2).sum() * 5000 / 4999) / y.sum()
    assert ratio.value == pytest.approx(R)
    # A limit of 2,000 resamples has a standard error of √(.025 · .975 / 2000) / φ(1.96) = .06 standard errors of the
    # ratio (.012), and its bias correction about as much: .001 together; four of them.
    assert (ratio.interval.low, ratio.interval.high) == pytest.approx(
        (R * np.exp(-1.959964 * error), R * np.exp(1.959964 * error)), abs=0.004
    )


@pytest.mark.slow
def test_intervals_of_the_o_e_ratio_of_few_clusters_cover() -> None:
    # 25 clusters of 12 rows whose log odds vary with standard deviation 0.8; percentiles at 2.5 and 97.5 % cover 90 %.
    sets, covered = 120, 0
    rng = np.random.default_rng(11)
    x, effect = rng.normal(0, 1.5, 100_000), rng.normal(0, 0.8, 100_000)
    truth = expit(x + effect).mean() / expit(x).mean()
    for seed in range(sets):
        rng = np.random.default_rng([seed, 25])
        cluster, x = np.arange(300) % 25, rng.normal(0, 1.5, 300)
        y = rng.random(300) < expit(x + rng.normal(0, 0.8, 25)[cluster])
        ends = to.measure(to.Predictions(y.astype(int), expit(x), cluster=cluster), "o_e", resamples=500).interval
        covered += ends.low <= truth <= ends.high
    assert covered >= binom.ppf(0.001, sets, 0.94)


@pytest.mark.slow
def test_every_group_of_two_classes_has_the_ratio_and_the_slope_of_by_group() -> None:
    rng = np.random.default_rng(8)
    p, site = rng.uniform(0.05, 0.95, 400), rng.choice(["a", "b"], 400)
    event = (rng.random(400) < np.where(site == "a", p, p**2)).astype(int)
    preds = to.Predictions(event, p, group={"site": site})
    audit = to.audit(preds, resamples=99)
    groups = audit.to_dict()["groups"]
    for estimator, name in (("o_e", "observed_to_expected"), ("calibration_slope", "calibration_slope")):
        for group, own in zip(groups, to.by_group(preds, estimator).groups, strict=True):
            (measure,) = (entry for entry in group["standard_measures"] if entry["name"] == name)
            assert measure["value"] == pytest.approx(own.estimate.value)
            limits = [measure["interval"][end] for end in ("low", "high")]
            assert limits == pytest.approx([own.estimate.interval.low, own.estimate.interval.high])
    ratio = groups[1]["standard_measures"][0]
    assert ratio["interval"]["high"] < 1
    table = group_measure_table(typed(audit.to_dict()))
    assert table.rows[1][0] == "site=b"
    assert table.rows[1][2] == f"{ratio['value']:.4f}"
    for text in (str(audit), audit.to_html()):
        assert "O:E ratio and calibration slope by group" in text
    several = to.audit(rng.integers(0, 3, 90), rng.dirichlet([2, 2, 2], 90), resamples=99)
    assert not group_measure_table(typed(several.to_dict())).rows


def test_ratio_and_error_of_a_group_share_its_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    # The rows of each group were drawn again for its O:E ratio, which made audits with groups up to 15 % slower.
    drawn = []
    create = Bootstrap.__init__

    def count(self, n, *rest):
        drawn.append(n)
        create(self, n, *rest)

    monkeypatch.setattr(Bootstrap, "__init__", count)
    site = np.repeat(["a", "b"], [150, 250])
    to.audit(two_classes(4, group={"site": site}), resamples=99)
    assert (drawn.count(150), drawn.count(250)) == (1, 1)
