"""The GiViTI test and belt: values of R, distribution after selection, redraws, and bounds by an optimizer."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import erfc

import trueodds as to
from tests import reference
from trueodds.hypotests._glm.calibration_belt import fit_belt
from trueodds.hypotests._glm.forward_selection import SELECTION_THRESHOLD, forward_null_distribution
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.giviti import GiViTI
from trueodds.lenses.view import View


def anchors(name):
    if name.startswith("hockey"):
        rows = reference.data("brcal_hockey.parquet").to_pydict()
        return View(p=np.array(rows[name.removeprefix("hockey_")]), y=np.array(rows["y"], dtype=float))
    rows = reference.frame("anchors/foreclosure.csv" if name == "foreclosure" else f"anchors/synthetic/{name}.csv")
    return View(p=rows["x" if name == "foreclosure" else "p"], y=rows["y"])


def curved(n=300, seed=0):
    """Outcomes that a parabola of log odds describes."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.03, 0.97, n)
    x = np.log(p / (1 - p))
    return View(p=p, y=(rng.random(n) < 1 / (1 + np.exp(-(x - 0.6 + 0.4 * x**2)))).astype(float))


@pytest.mark.parametrize("name", ["hockey_x", "hockey_rand", "g2_300", "foreclosure"])
def test_statistic_degree_and_curve_are_those_of_givitir(name):
    golden = reference.golden("anchors/golden.json")
    result, r = GiViTI().evaluate(anchors(name)), golden["r_packages"]["giviti"][name]
    ours = golden["numpy_independent"]["giviti"][name]
    curve = result.parts["curve"]
    assert curve["degree"] == r["m"]
    assert result.statistic == pytest.approx(r["stat"], rel=1e-11)
    assert [curve[f"b{j}"] for j in range(r["m"] + 1)] == pytest.approx(ours["coef"], abs=1e-10)
    assert result.pvalue == pytest.approx(r["p"], rel=1e-9, abs=1e-16)


def test_the_test_of_a_model_on_its_own_rows_is_that_of_givitir():
    r = reference.golden("anchors/golden.json")["r_packages"]["giviti"]["hockey_x_internal"]
    result = GiViTI(fitted=True).evaluate(anchors("hockey_x"))
    assert (result.statistic, result.pvalue) == pytest.approx((r["stat"], r["p"]), rel=1e-10)
    assert [result.parts["curve"][f"b{j}"] for j in range(3)] == pytest.approx(r["coef"], abs=1e-10)


def test_the_law_after_selection_is_that_of_givitir():
    # Its integrals for fitted models and degrees 3 and 4 are right to about 1e-6 only; the others agree to 1e-10.
    golden = reference.golden("anchors/golden.json")["r_packages"]["giviti"]["cdf"]
    t = np.array(golden["t"], dtype=float)
    for base, kind in ((2, "external"), (1, "internal")):
        for degree in range(3 - base, 5):
            if f"{kind}_m{degree}" in golden:
                ours = 1 - forward_null_distribution(base, degree - (3 - base)).upper_tail(t)
                assert ours == pytest.approx(
                    golden[f"{kind}_m{degree}"], abs=2e-6 if base == 1 and degree > 2 else 1e-10
                )


def test_the_law_after_one_step_of_a_fitted_model_is_the_integral():
    # P(χ²₁ + T > x), T = χ²₁ given T > k: the mean of P(χ²₁ > x − T), by adaptive quadrature in s = √(x − t).
    share = erfc(np.sqrt(SELECTION_THRESHOLD / 2))

    def density(t):
        return np.exp(-t / 2) / np.sqrt(2 * np.pi * t) / share

    for x in (4.0, 6.0, 13.0, 20.0):
        inside, _ = quad(
            lambda s, x=x: 2 * s * density(x - s * s) * erfc(s / np.sqrt(2)),
            0,
            np.sqrt(x - SELECTION_THRESHOLD),
            epsabs=1e-13,
        )
        assert forward_null_distribution(1, 1).upper_tail(x) == pytest.approx(
            inside + erfc(np.sqrt(x / 2)) / share, rel=1e-10
        )


def test_quantiles_and_tails_of_many_steps():
    for base in (1, 2):
        for terms in range(7):
            of = forward_null_distribution(base, terms)
            assert of.upper_tail(of.quantile(0.95)) == pytest.approx(0.05, rel=1e-8)
            tail = of.negative_log_pvalue(np.array([0.0, 500.0, 3000.0]))
            assert tail[0] == 0
            assert np.diff(tail).min() > 0
    # Mean 2 + E[χ²₁ | > k], the latter 1 + √(2k/π) e^{−k/2} / .05; the mean is the integral of the tail.
    mean, _ = quad(
        lambda x: float(forward_null_distribution(2, 1).upper_tail(x)),
        0,
        100,
        points=[SELECTION_THRESHOLD],
        epsabs=1e-12,
    )
    assert mean == pytest.approx(
        3 + np.sqrt(2 * SELECTION_THRESHOLD / np.pi) * np.exp(-SELECTION_THRESHOLD / 2) / 0.05, rel=1e-9
    )


def test_with_one_degree_it_is_the_test_of_cox():
    view = anchors("g2_300")
    cox, giviti = Cox().evaluate(view), GiViTI(max_degree=1).evaluate(view)
    assert (giviti.statistic, giviti.pvalue) == pytest.approx((cox.statistic, cox.pvalue), rel=1e-9)
    assert giviti.effect == pytest.approx(cox.effect, rel=1e-9)


@pytest.mark.parametrize("in_sample", [False, True])
@pytest.mark.parametrize("form", ["likelihood-ratio", "score"])
def test_draws_select_their_degree_anew_as_the_data_do(form, in_sample):
    test, rng = GiViTI(form=form, fitted=in_sample), np.random.default_rng(1)
    view = curved(120)
    draws = (rng.random((40, 120)) < view.p).astype(float)
    draws[::2] = rng.random((20, 120)) < 1 - 4 * (view.p - 0.5) ** 2
    many = test.cell_statistic(view).statistic(np.ones(120), view.p, draws)
    results = [test.evaluate(view.with_y(one)) for one in draws]
    assert many == pytest.approx([-np.log(one.pvalue) for one in results], rel=1e-7, abs=1e-9)
    assert len({one.parts["curve"]["degree"] for one in results}) > 1


def test_a_curvature_that_no_line_shows_is_detected():
    result = GiViTI().evaluate(curved())
    assert result.parts["curve"]["degree"] >= 2
    assert result.pvalue < 1e-4


@pytest.mark.parametrize("form", ["likelihood-ratio", "score"])
def test_size_with_unequal_weights(form):
    # Rejections at 5 % of 1,000 calibrated data sets are Binomial(1000, .05): 27 to 76 in all but 1 in 1,000 cases.
    rng = np.random.default_rng(2)
    n = 400
    p, w = rng.uniform(0.1, 0.9, n), rng.choice([1.0, 5.0], n)
    read = GiViTI(form=form).cell_statistic(View(p=p, y=p, w=w)).statistic
    minus_log_p = read(w, w * p, w * (rng.random((1000, n)) < p))
    assert 27 <= (np.exp(-minus_log_p) <= 0.05).sum() <= 76


def test_too_few_values_leave_powers_out():
    result = GiViTI().evaluate(View(p=[0.2, 0.2, 0.5, 0.5, 0.5], y=[0, 1, 1, 0, 1]))
    assert {note.code for note in result.notes} == {"TN218"}
    # One value leaves the intercept, with one degree of freedom: by hand in the tests of Cox's regression.
    one = GiViTI().evaluate(View(p=[0.5] * 4, y=[1, 1, 1, 0]))
    assert one.statistic == pytest.approx(2 * (3 * np.log(3) - 4 * np.log(2)), rel=1e-12)
    assert one.pvalue == pytest.approx(erfc(np.sqrt(one.statistic / 2)), rel=1e-10)
    nothing = GiViTI(fitted=True).evaluate(View(p=[0.2, 0.2, 0.5, 0.5], y=[0, 1, 1, 0]))
    assert np.isnan(nothing.pvalue)


def test_separation_is_noted_and_redraws_take_no_fit():
    preds = to.Predictions([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    codes = {note.code for note in to.test(preds, "giviti").notes}
    assert {"TN217", "TN212"} <= codes
    monte_carlo = to.test(preds, "giviti", null="redraw", resamples=99)
    assert monte_carlo.settings["form"] == "score"
    assert 0.01 <= monte_carlo.pvalue <= 1


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("name", ["hockey_x", "g2_300"])
def test_the_belt_is_that_of_givitir(name, level):
    # R's own optimizer is loose by 2.5e-7, as a second program found too.
    r = reference.golden("anchors/golden.json")["r_packages"]["giviti"][f"belt_{name}_{level:g}"]
    calibration_belt = fit_belt(anchors(name), (level,), r["p"])
    assert calibration_belt.degree == r["m"]
    assert calibration_belt.table[f"low_{level:g}"] == pytest.approx(r["L"], abs=5e-7)
    assert calibration_belt.table[f"high_{level:g}"] == pytest.approx(r["U"], abs=5e-7)


def test_the_belt_of_a_bent_curve_is_what_an_optimizer_finds():
    view, at = curved(), np.array([0.06, 0.3, 0.9])
    calibration_belt = fit_belt(view, (0.9,), at)
    assert calibration_belt.degree == 2
    x = np.log(view.p / (1 - view.p))
    X, drop = np.vander(x, 3, increasing=True), forward_null_distribution(2, 1).quantile(0.9) / 2

    def loss(b):
        return (np.logaddexp(0, X @ b) - view.y * (X @ b)).sum()

    def slope(b):
        return X.T @ (1 / (1 + np.exp(-X @ b)) - view.y)

    optimum = minimize(loss, [0, 1, 0], jac=slope, method="BFGS", options={"gtol": 1e-9})
    for i, p in enumerate(at):
        a = np.log(p / (1 - p)) ** np.arange(3)
        for side, name in ((1, "low_0.9"), (-1, "high_0.9")):
            limit = {"type": "ineq", "fun": lambda b: optimum.fun + drop - loss(b), "jac": lambda b: -slope(b)}
            end = minimize(
                lambda b, s=side, a=a: s * (a @ b), optimum.x, jac=lambda b, s=side, a=a: s * a, method="SLSQP",
                constraints=limit, options={"ftol": 1e-12, "maxiter": 500},
            )  # fmt: skip
            assert calibration_belt.table[name][i] == pytest.approx(1 / (1 + np.exp(-(a @ end.x))), abs=1e-5)


def test_the_belt_tells_where_it_leaves_the_diagonal():
    calibration_belt = fit_belt(anchors("hockey_rand"))
    below = [segment for segment in calibration_belt.segments if segment.level == 0.95 and segment.side == "below"]
    assert below
    p, high = calibration_belt.table["p"], calibration_belt.table["high_0.95"]
    inside = np.any([(segment.start <= p) & (p <= segment.stop) for segment in below], axis=0)
    assert (inside == (high < p)).all()
    # A belt holds the diagonal wherever the test does not reject: the diagonal lies in the region that it bounds.
    rng, calm = np.random.default_rng(3), 0
    for _ in range(20):
        q = rng.uniform(0.05, 0.95, 100)
        calibration_belt = fit_belt(View(p=q, y=rng.random(100) < q), (0.95,), 21)
        calm += calibration_belt.pvalue > 0.05
        assert calibration_belt.pvalue <= 0.05 or calibration_belt.segments == ()
    assert calm > 10


def test_a_belt_without_a_finite_curve_reaches_the_end_and_keeps_its_other_side():
    # All 6 came. At the smallest and largest p the lower bound is at infinity: that row alone has probability q, the
    # others 1, so log q = −drop, with drop half the quantile: for level c and χ²₂, q = 1 − c.
    calibration_belt = fit_belt(View(p=[0.1, 0.2, 0.3, 0.6, 0.7, 0.8], y=np.ones(6)), (0.8, 0.95), 3)
    assert calibration_belt.table["high_0.95"].tolist() == [1.0, 1.0, 1.0]
    assert calibration_belt.table["low_0.8"][[0, 2]] == pytest.approx([0.2, 0.2], abs=1e-3)
    assert calibration_belt.table["low_0.95"][[0, 2]] == pytest.approx([0.05, 0.05], abs=1e-3)
    assert "TN217" in {note.code for note in calibration_belt.notes}


def test_equal_weights_of_any_size_change_no_belt():
    view = anchors("g2_300")
    heavy = View(p=view.p, y=view.y, w=np.full(len(view), 3.0))
    a, b = fit_belt(view, (0.95,), 5), fit_belt(heavy, (0.95,), 5)
    for name, column in a.table.items():
        assert b.table[name] == pytest.approx(column, rel=1e-7)


def test_points_and_levels_outside_are_refused():
    for wrong in ({"levels": (0.95, 1.0)}, {"points": [0.0, 0.5]}, {"points": 1}):
        with pytest.raises(to.InputError, match="TO203"):
            fit_belt(curved(40), **wrong)


@pytest.mark.parametrize("seed", [12, 15])
def test_votes_whose_draws_select_different_degrees_are_tested(seed: int) -> None:
    """Regression: KeyError 'b2', a coefficient that the first draw of votes had and another did not."""
    rng = np.random.default_rng(seed)
    p, n_votes = rng.dirichlet([1, 1, 0.5], 240), rng.integers(1, 6, 240)
    votes = np.array([rng.multinomial(n, row) for n, row in zip(n_votes, p, strict=True)])
    assert 0 < to.test(to.Predictions(votes, p), "giviti").pvalue <= 1
