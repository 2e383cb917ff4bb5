"""Cox's regression: the likelihood ratios of R, the score test, separation, weights, zeros and ones."""

import numpy as np
import pytest
from scipy.special import expit, logit

import trueodds as to
from tests import reference
from tests.rates import rate_is_at_level
from trueodds.estimators._glm.logistic import fit_logit_regression
from trueodds.estimators._glm.logits import LogitPolynomials, Logits
from trueodds.hypotests.cox import Cox
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import lens_views


def five_hundred():
    rows = reference.frame("estimators/c_binary500.csv")
    return View(p=rows["p"], y=rows["y"])


def test_the_regression_is_that_of_the_reference():
    # rms::val.prob and statsmodels
    golden = reference.estimators()["c.cox"]["value"]
    result = Cox().evaluate(five_hundred())
    joint, large, slope = (result.parts[part] for part in ("joint", "in-the-large", "slope"))
    assert (joint["intercept"], joint["slope"]) == pytest.approx((golden["intercept"], golden["slope"]), rel=1e-10)
    assert (joint["statistic"], joint["pvalue"]) == pytest.approx((golden["lrt"], golden["p_df2"]), rel=1e-10)
    assert large["in_the_large"] == pytest.approx(golden["citl_intercept"], rel=1e-10)
    assert large["statistic"] == pytest.approx(golden["lrt_intercept_given_slope1"], rel=1e-10)
    assert slope["statistic"] == pytest.approx(golden["lrt_slope_given_intercept"], rel=1e-10)
    assert (large["pvalue"], slope["pvalue"]) == pytest.approx((golden["p_df1_citl"], golden["p_df1_slope"]), rel=1e-10)


def test_the_score_test_is_that_of_the_reference():
    golden = reference.estimators()["c.cox_score_test"]["value"]
    result = Cox(form="score").evaluate(five_hundred())
    assert (result.statistic, result.pvalue) == pytest.approx((golden["stat"], golden["p_df2"]), rel=1e-10)


@pytest.mark.parametrize("column", ["x", "rand"])
def test_hockey_has_the_standard_errors_of_an_independent_fit(column):
    golden = reference.golden("anchors/golden.json")["numpy_independent"]["llo"][f"hockey_{column}"]
    rows = reference.data("brcal_hockey.parquet").to_pydict()
    result = Cox().evaluate(View(p=np.array(rows[column]), y=np.array(rows["y"], dtype=float)))
    joint, large = result.parts["joint"], result.parts["in-the-large"]
    assert joint["statistic"] == pytest.approx(golden["lrt_joint"], rel=1e-10)
    assert joint["pvalue"] == pytest.approx(golden["p_joint"], rel=1e-8)
    assert np.exp(joint["intercept"]) == pytest.approx(golden["delta"], rel=1e-9)
    assert joint["slope"] == pytest.approx(golden["gamma"], rel=1e-9)
    assert (joint["intercept_se"], joint["slope_se"]) == pytest.approx(
        (golden["se_intercept"], golden["se_slope"]), rel=1e-8
    )
    assert large["in_the_large"] == pytest.approx(golden["cal_in_large"], rel=1e-8)
    # The reference has the standard error of the model, 1/√Σq(1 − q). The sandwich estimate is √Σ(y − q)² times its
    # square, with q fitted at slope 1.
    q = expit(logit(np.array(rows[column])) + golden["cal_in_large"])
    sandwich = golden["cal_in_large_se"] ** 2 * np.sqrt(((np.array(rows["y"]) - q) ** 2).sum())
    assert large["in_the_large_se"] == pytest.approx(sandwich, rel=1e-8)


def test_calibration_in_the_large_has_a_sandwich_standard_error_in_rows_and_cells():
    # Half of the events occur at p = .25 and at p = .75, four rows each. The shift is 0 by symmetry, the information
    # 8 · 3/16 = 1.5, and the squared residuals sum to 4 (.75² + .25²) = 2.5. Equal weights do not change it.
    p, y = np.repeat([0.25, 0.75], 4), np.tile([1, 1, 0, 0], 2)
    (cells,) = lens_views(to.tally(to.Predictions(y, p)), as_lens("positive"))
    assert len(cells) == 2
    for view in (View(p=p, y=y), View(p=p, y=y, w=np.full(8, 3.0)), cells):
        assert Cox().coefficients(view)["in_the_large"].se == pytest.approx(np.sqrt(2.5) / 1.5, rel=1e-9)


def test_the_squared_residual_of_calibration_in_the_large_counts_by_the_squared_weight():
    # p = 1/2 and y = 1, 0, 0 with weights 2, 1, 1: shift 0, information 4/4, and Σw²(y − q)² = (4 + 1 + 1)/4.
    coefficient = Cox().coefficients(View(p=[0.5] * 3, y=[1, 0, 0], w=[2, 1, 1]))["in_the_large"]
    assert coefficient.se == pytest.approx(np.sqrt(1.5), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "true_probability"),
    [(500, lambda x: expit(x / 2)), (300, lambda x: expit(x / 1.5)), (500, lambda x: 0.15 + 0.7 * expit(x))],
    ids=["temperature 2", "temperature 1.5", "label noise"],
)
def test_the_interval_of_the_intercept_covers_whatever_the_slope_is(n, true_probability):
    # By symmetry the true shift is 0.
    rng = np.random.default_rng(5)

    def is_missed(_):
        x = rng.normal(0, 3, n)
        view = View(p=expit(x), y=(rng.random(n) < true_probability(x)).astype(float))
        interval = Cox().coefficients(view)["in_the_large"].interval
        return not interval.low <= 0 <= interval.high

    assert rate_is_at_level(map(is_missed, range(1000)), 0.05, excluded=0.09)


def test_in_the_large_by_hand():
    # All p = 1/2 and 3 of 4 came: the best intercept is log 3, and the likelihood ratio
    # 2 (3 log(3/4) + log(1/4) − 4 log(1/2)) = 2 (3 log 3 − 4 log 2).
    result = Cox(part="in-the-large").evaluate(View(p=[0.5] * 4, y=[1, 1, 1, 0]))
    assert result.statistic == pytest.approx(2 * (3 * np.log(3) - 4 * np.log(2)), rel=1e-12)
    assert result.parts["in-the-large"]["in_the_large"] == pytest.approx(np.log(3), rel=1e-9)
    assert result.effect == 0.25
    assert "TN218" in {note.code for note in result.notes}
    assert result.parts["joint"]["df"] == 1
    assert np.isnan(result.parts["joint"]["slope"])


def test_the_score_statistics_without_a_fit_by_hand():
    # p = .2, .8 and y = 1, 1: residuals .8, .2, scores 1 (intercept) and −.6 log 4 (slope), v = .16 each: the
    # information is diagonal, .32 and .32 (log 4)², so the statistic is 1/.32 + .36/.32.
    result = Cox(form="score").evaluate(View(p=[0.2, 0.8], y=[1, 1]))
    assert result.statistic == pytest.approx(1.36 / 0.32, rel=1e-12)
    assert result.parts["in-the-large"]["statistic"] == pytest.approx(1 / 0.32, rel=1e-12)


def test_likelihood_ratios_of_the_parts_add_up():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.9, 80)
    parts = Cox().evaluate(View(p=p, y=rng.random(80) < 0.5)).parts
    total = parts["in-the-large"]["statistic"] + parts["slope"]["statistic"]
    assert parts["joint"]["statistic"] == pytest.approx(total, rel=1e-9)


def test_separated_outcomes_are_noted_and_their_likelihood_is_its_limit():
    # The best curve says what came: the limit of the log-likelihood is 0, so the ratio is −2 Σ log p(what came).
    view = View(p=[0.1, 0.3, 0.6, 0.8], y=[0, 0, 1, 1])
    result = Cox().evaluate(view)
    assert result.statistic == pytest.approx(-2 * np.log([0.9, 0.7, 0.6, 0.8]).sum(), rel=1e-9)
    assert {note.code for note in result.notes} == {"TN217"}
    assert np.isnan(result.parts["joint"]["slope"])
    assert any("limit" in warning for warning in result.asymptotic_warnings)
    assert not any("limit" in warning for warning in Cox(form="score").evaluate(view).asymptotic_warnings)


def test_a_maximum_is_finite_just_when_outcomes_overlap():
    # With one variable: no finite maximum if and only if all that came lies on one side of all that did not.
    rng = np.random.default_rng(4)
    for n in (4, 6, 9):
        p = np.round(rng.uniform(0.05, 0.95, n), 1)
        logits = Logits.from_view(View(p=p, y=p), 0.0, "cox")
        powers = LogitPolynomials.from_logits(logits, 1)
        y = (rng.random((200, n)) < 0.5).astype(float)
        finite = fit_logit_regression(powers.columns, logits.x, logits.w, y).has_maximum
        for one, is_finite in zip(y, finite, strict=True):
            events, nonevents = p[one == 1], p[one == 0]
            separated = (
                not len(events)
                or not len(nonevents)
                or events.min() >= nonevents.max()
                or events.max() <= nonevents.min()
            )
            assert is_finite == (not separated)


def test_equal_weights_of_any_size_change_no_pvalue():
    view = five_hundred()
    heavy = View(p=view.p, y=view.y, w=np.full(len(view), 2.5))
    for form in ("likelihood-ratio", "score"):
        a, b = Cox(form=form).evaluate(view), Cox(form=form).evaluate(heavy)
        for part in a.parts:
            assert {k: b.parts[part][k] for k in b.parts[part]} == pytest.approx(a.parts[part], rel=1e-8)


def test_a_row_of_weight_zero_is_no_row_even_at_probability_zero():
    view = View(p=[0.0, 0.2, 0.7, 0.6, 0.3], y=[1, 0, 1, 0, 1], w=[0, 1, 1, 1, 1])
    assert Cox().evaluate(view).statistic == pytest.approx(
        Cox().evaluate(view.take(np.arange(1, 5))).statistic, rel=1e-12
    )


@pytest.mark.parametrize("form", ["likelihood-ratio", "score"])
@pytest.mark.parametrize("part", ["joint", "in-the-large", "slope"])
def test_size_with_unequal_weights(form, part):
    # Rejections at 5 % of 2,000 calibrated data sets are Binomial(2000, .05): within 65 to 138 in all but 1 in 2,000
    # cases. Without the sandwich, weights of 1 and 5 reject several times as often.
    rng = np.random.default_rng(5)
    n = 400
    p, w = rng.uniform(0.1, 0.9, n), rng.choice([1.0, 5.0], n)
    view = View(p=p, y=(rng.random(n) < p).astype(float), w=w)
    read = Cox(part=part, form=form).cell_statistic(view).statistic
    statistics = read(w, w * p, w * (rng.random((2000, n)) < p))
    assert 65 <= (statistics > (5.991 if part == "joint" else 3.841)).sum() <= 138


@pytest.mark.parametrize("form", ["likelihood-ratio", "score"])
@pytest.mark.parametrize("part", ["joint", "in-the-large", "slope"])
def test_draws_use_the_statistic_that_is_shown(form, part):
    view, test = five_hundred(), Cox(part=part, form=form)
    assert test.cell_statistic(view).value() == pytest.approx(test.evaluate(view).statistic, rel=1e-10)


def test_redraws_take_the_score_form_by_default():
    rng = np.random.default_rng(6)
    p = rng.uniform(0.05, 0.95, 60)
    preds = to.Predictions((rng.random(60) < p).astype(int), p)
    monte_carlo = to.test(preds, "cox", null="redraw", resamples=99)
    assert (monte_carlo.settings["form"], monte_carlo.min_pvalue) == ("score", 0.01)
    assert monte_carlo.statistic == to.test(preds, "cox", form="score").statistic
    assert to.test(preds, "cox").settings["form"] == "likelihood-ratio"
    likelihood_ratio = to.test(preds, "cox", null="redraw", form="likelihood-ratio", resamples=99)
    # The same p-value within Monte-Carlo error, as 60 rows around ½ are enough for χ²: 4 standard errors of 99 draws.
    assert abs(likelihood_ratio.pvalue - to.test(preds, "cox").pvalue) < 4 * np.sqrt(0.25 / 99) + 0.02


def test_few_confident_predictions_bring_a_doubt_and_many_do_not():
    rng = np.random.default_rng(7)
    logit = -8 + 5 * rng.standard_normal(100)
    sharp = 1 / (1 + np.exp(-logit))
    small = to.test(to.Predictions((rng.random(100) < sharp).astype(int), sharp), "cox")
    assert "TN212" in {note.code for note in small.notes}
    even = rng.uniform(0.1, 0.9, 400)
    many = to.test(to.Predictions((rng.random(400) < even).astype(int), even), "cox")
    assert "TN212" not in {note.code for note in many.notes}


def test_probabilities_of_zero_and_one_are_refused_or_counted():
    preds = to.Predictions([0, 1, 1, 0, 1], [0.0, 1.0, 0.7, 0.6, 0.2])
    with pytest.raises(to.InputError, match=r"TO205.*2 of 5 rows"):
        to.test(preds, "cox")
    verdict = to.test(preds, "cox", min_prob=0.01)
    assert [note.text for note in verdict.notes if note.code == "TN106"] == [
        "min_prob=0.01 clipped the probabilities of 2 of 5 rows."
    ]
    assert verdict.settings["min_prob"] == 0.01


def test_a_tally_gives_nearly_the_statistic_of_the_rows():
    rng = np.random.default_rng(8)
    p = rng.uniform(0.05, 0.95, 3000)
    preds = to.Predictions((rng.random(3000) < p**1.2).astype(int), p)
    exact, tallied = (to.test(preds, "cox", mode=mode) for mode in ("exact", "tally"))
    assert tallied.statistic == pytest.approx(exact.statistic, rel=2e-3)
