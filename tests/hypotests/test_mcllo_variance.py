"""The MCLLO test by variance estimator, baseline class, and predictions fitted to the tested outcomes."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, f, t

import trueodds as to
from tests.calibrators.linear import reference
from tests.calibrators.rows import draw_predictions, labels, one_hot
from tests.data.refused import refused
from tests.reference import golden
from trueodds.calibrators._glm.parameter_covariance import IndependentUnits
from trueodds.calibrators._glm.parameter_uncertainty import ParameterTable
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloSpec
from trueodds.calibrators.vector import BiasCorrectedTemperatureSpec
from trueodds.hypotests._glm.mcllo_likelihood import MclloModel
from trueodds.hypotests.mcllo import Mcllo
from trueodds.lenses.view import View


def drawn(n, k, seed, sharpness=1.0):
    P, y = draw_predictions(n, k, sharpness, seed)
    return View(p=P, y=one_hot(y, k))


def in_clusters(rng, count, k, size=5):
    """Equal predictions in a cluster, whose labels share their random number in half of the clusters."""
    P, cluster = np.repeat(rng.dirichlet(np.ones(k), count), size, axis=0), np.repeat(np.arange(count), size)
    u = np.where((rng.random(count) < 0.5)[cluster], rng.random(count)[cluster], rng.random(count * size))
    return (P.cumsum(axis=1) > u[:, None]).argmax(axis=1), P, cluster


# The variance of the scores


def test_the_score_in_the_empirical_variance_by_hand():
    # p = ½ and ¾ (log odds 0 and l), twice each; of ½ one came, of ¾ none. Scores (r x, r): (0, ½), (0, −½),
    # (−¾l, −¾) twice; their sum is (−1.5 l, −1.5), their squares Σ rx² = 9l²/8, Σ r²x = 9l/8, Σ r² = 1/2 + 9/8. In
    # units of l that is g = (−1.5, −1.5) and M = (9/8, 9/8; 9/8, 13/8): M⁻¹g = (−4/3, 0), so g'M⁻¹g = 2, times the
    # inverse of G/(G − 1) = 4/3: 1.5. As Hotelling's T² with d = 2: T² (4 − 2)/(3 · 2) = ½ is F with 2 and 2.
    view = View(p=[0.5, 0.5, 0.75, 0.75], y=[1, 0, 0, 0])
    result = Mcllo(form="score", variance="empirical").evaluate(view)
    assert result.statistic == pytest.approx(1.5)
    assert result.pvalue == pytest.approx(f.sf(0.5, 2, 2))
    assert result.settings_used["variance"] == "empirical"


def left_out(rows, baseline, units):
    """(τ, then γ) of each other class, its covariance and the number of units it rests on, from the reference fit.

    Written out unit by unit: z = (H − B)⁻¹ s, Σ z z' (G − 1)/G; shares tr(H⁻¹B); whitened squared lengths of z.
    """
    want = golden("recalibration/mcllo.json")[f"base{baseline}"]
    tau, gamma, H = np.array(want["tau"]), np.array(want["gamma"]), np.linalg.inv(want["cov_tau_gamma"])
    x = np.log(rows.P / rows.P[:, [baseline]])[:, want["categories"]]
    eta = np.exp(tau + gamma * x)
    q, Y = eta / (1 + eta.sum(axis=1, keepdims=True)), rows.Y[:, want["categories"]]
    z, shares = [], []
    for unit in range(units.max() + 1):
        s, B = np.zeros(6), np.zeros((6, 6))
        for i in np.flatnonzero(units == unit):
            X = np.concatenate([np.eye(3), np.diag(x[i])])  # of τ, of γ
            s += X @ (Y[i] - q[i])
            B += X @ (np.diag(q[i]) - np.outer(q[i], q[i])) @ X.T
        z.append(np.linalg.solve(H - B, s))
        shares.append(np.trace(np.linalg.solve(H, B)))
    z, G = np.array(z), len(z)
    lengths = np.einsum("gi,ij,gj->g", z, np.linalg.inv(z.T @ z), z)
    effective_n = min(G, sum(shares) ** 2 / np.square(shares).sum(), 8 * 6 / np.square(lengths).sum())
    return np.concatenate([tau, gamma - 1]), z.T @ z * (G - 1) / G, effective_n


@pytest.mark.parametrize("clustered", [False, True])
def test_the_covariance_is_that_of_leaving_units_out_of_the_reference_fit(clustered):
    # golden/recalibration/mcllo.json has the fit and its covariance; what leaving out does is written out above.
    rows, m = reference(), 3
    units = np.arange(400) // (4 if clustered else 1)
    deviation, V, effective_n = left_out(rows, 3, units)
    preds = to.Predictions(rows.Y.argmax(axis=1), rows.P, cluster=units if clustered else None)
    if clustered:
        result, expected = to.test(preds, "mcllo"), ("clusters", 100)
        assert (result.settings["variance"], result.settings["clusters"]) == expected
        assert "independently of those of other clusters" in result.null
        assert result.null.endswith("Hotelling's T² of clusters with 6 dimensions")
        assert "posterior" not in result.parts["joint"]
        # The table of the fit says the same, by the same laws.
        uncertainty = to.fit(preds, "mcllo").calibration_map.uncertainty
        assert uncertainty.effective_units == pytest.approx(effective_n, rel=1e-5)
        assert np.sqrt(uncertainty.covariance[:, 0, 0]) == pytest.approx(np.sqrt(V.diagonal()[:m]), rel=1e-5)
    else:
        result = Mcllo(variance="empirical").evaluate(View(p=rows.P, y=rows.Y))
    T2 = deviation @ np.linalg.solve(V, deviation)
    assert result.statistic == pytest.approx(T2, rel=1e-5)
    assert result.pvalue == pytest.approx(
        f.sf(T2 * (effective_n - 6) / (6 * (effective_n - 1)), 6, effective_n - 6), rel=1e-4
    )
    for j in range(m):
        part, se = result.parts[f"class:{j}"], np.sqrt(V.diagonal())
        assert (part["tau_se"], part["gamma_se"]) == pytest.approx((se[j], se[m + j]), rel=1e-5)
        half_width = t.ppf(0.975, effective_n - 1) * se[m + j]
        assert (part["gamma_low"], part["gamma_high"]) == pytest.approx(
            (1 + deviation[m + j] - half_width, 1 + deviation[m + j] + half_width), rel=1e-5
        )
    # The likelihood ratio keeps to Wald's quotient of both variances.
    want = golden("recalibration/mcllo.json")["base3"]
    assert result.parts["joint"]["likelihood_ratio"] == pytest.approx(want["lrt"] * T2 / want["wald"], rel=1e-5)


@pytest.mark.parametrize("form", ["wald", "likelihood-ratio", "score"])
def test_many_rows_tell_the_variance_that_the_model_says(form):
    # With (d + 2)d / worth ≥ Σ |u|⁴ of whitened moves u, the variance of Σ (e·u)² in any direction e is at most that:
    # the statistics differ relatively by less than four standard deviations, 4 √24 / √worth, here 40 %.
    view = drawn(10_000, 3, 1)
    by_rows, by_model = (
        Mcllo(form=form, variance=variance).evaluate(view).statistic for variance in ("empirical", "model")
    )
    model = MclloModel.from_view(view, -1, 0.0, "mcllo", IndependentUnits.from_rows(view.w))
    effective_n = model.estimate_covariance.effective_units
    assert effective_n > 2000
    assert by_rows == pytest.approx(by_model, rel=4 * np.sqrt(24 / effective_n))


def test_clusters_of_one_row_are_the_empirical_variance():
    P, y = draw_predictions(200, 3, 1.3, 2)
    one = to.test(to.Predictions(y, P, cluster=np.arange(200)), "mcllo")
    assert one.statistic == pytest.approx(to.test(to.Predictions(y, P), "mcllo", variance="empirical").statistic)


@pytest.mark.slow
def test_clusters_do_not_reject_more_often_than_they_say():
    # 200 clusters of 5 equal predictions whose labels hang together: rejections at 5 % of 200 sets, inside the 99.9 %
    # range of Binomial(200, p) for some p of 4 to 8 %, the range that is said;
    # rows taken as independent reject far more.
    rng, rejected, naive = np.random.default_rng(3), 0, 0
    for _ in range(200):
        y, P, cluster = in_clusters(rng, 200, 2)
        view = View(p=P[:, 1], y=y)
        rejected += Mcllo().evaluate_with_clusters(view, cluster).pvalue <= 0.05
        naive += Mcllo().evaluate(view).pvalue <= 0.05
    assert binom.ppf(0.0005, 200, 0.04) <= rejected <= binom.ppf(0.9995, 200, 0.08)
    assert naive > 40


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_nor_do_clusters_of_very_unequal_size(k):
    # One of 200 rows and forty of 5, with labels of a Gaussian copula (ρ = .3): a law that counts 41 clusters rejected
    # 36 and 50 % of such sets. Rejections at 5 % of 150 sets stay below the 99.9 % point of Binomial(150, .08), for the
    # test and for each class in the table of a fit.
    cluster = np.repeat(np.arange(41), [200] + [5] * 40)
    rng, rejected, in_table, classes = np.random.default_rng(30 + k), 0, 0, 0
    for _ in range(150):
        P = rng.dirichlet(np.ones(k), 41)[cluster]
        u = ndtr(np.sqrt(0.3) * rng.normal(size=41)[cluster] + np.sqrt(0.7) * rng.normal(size=400))
        Y = one_hot((P.cumsum(axis=1) > u[:, None]).argmax(axis=1), k)
        view = View(p=P, y=Y) if k > 2 else View(p=P[:, 1], y=Y[:, 1])
        rejected += Mcllo().evaluate_with_clusters(view, cluster).pvalue <= 0.05
        m = MclloSpec().fit_with_report(P, Y, np.ones(400), cluster)[0]
        p = ParameterTable(tuple(range(k)), m.baseline, m.tau, m.gamma, m.uncertainty).pvalues
        in_table, classes = in_table + (p <= 0.05).sum(), classes + len(p)
    assert rejected <= binom.ppf(0.9995, 150, 0.08)
    assert in_table <= binom.ppf(0.9995, classes, 0.08)


def test_a_single_cluster_that_tells_nearly_all_leaves_the_score():
    # Four directions, and by the sizes two or three equal clusters' worth: Wald's law has no degrees of freedom left.
    rng = np.random.default_rng(33)
    cluster = np.repeat(np.arange(41), [400] + [2] * 40)
    P = rng.dirichlet(np.ones(3), 480)
    view = View(p=P, y=one_hot(labels(P, rng), 3))
    model = MclloModel.from_view(view, None, 0.0, "mcllo", IndependentUnits.from_clusters(view.w, cluster))
    assert model.estimate_covariance.effective_units < 4
    result = Mcllo().evaluate_with_clusters(view, cluster)
    assert (result.settings_used["form"], np.isnan(result.pvalue)) == ("score", False)
    wald = Mcllo(form="wald").evaluate_with_clusters(view, cluster)
    assert np.isnan(wald.pvalue)
    assert "TN237" in {note.code for note in wald.notes}


def test_few_clusters_bring_a_doubt_to_the_score_and_many_do_not():
    for count, doubted in ((20, True), (1000, False)):
        y, P, cluster = in_clusters(np.random.default_rng(4), count, 2)
        preds = to.Predictions(y, P, cluster=cluster)
        verdict = to.test(preds, "mcllo", form="score")
        codes = {note.code for note in verdict.notes}
        assert ("TN212" in codes) == doubted
        assert "TN204" in codes
        assert "TN212" not in {note.code for note in to.test(preds, "mcllo").notes}  # it rejects too seldom


def test_what_is_advised_in_doubt_can_be_done():
    P, y = draw_predictions(30, 2, 1.0, 5)
    preds = to.Predictions(y, P)
    (text,) = [n.text for n in to.test(preds, "mcllo", variance="empirical", form="score").notes if n.code == "TN212"]
    assert text.endswith("Use null='redraw' without variance, which keeps its level.")


def test_the_law_that_is_printed_is_the_one_that_was_used():
    P, y = draw_predictions(60, 3, 1.0, 5)
    assert to.test(to.Predictions(y, P), "mcllo").null.endswith("χ² with 4 degrees of freedom")
    flat = to.Predictions([0, 1, 2] * 20, [[0.5, 0.3, 0.2]] * 60)  # two shifts, no slope
    assert to.test(flat, "mcllo").null.endswith("χ² with 2 degrees of freedom")
    one = to.Predictions([0, 1] * 20, [0.4] * 40)
    assert to.test(one, "mcllo").null.endswith("χ² with 1 degree of freedom")
    rows = to.test(to.Predictions(y, P), "mcllo", variance="empirical")
    assert rows.null.endswith("Hotelling's T² of rows with 4 dimensions")


def test_too_few_clusters_tell_no_variance():
    P, y = draw_predictions(40, 3, 1.0, 5)
    verdict = to.test(to.Predictions(y, P, cluster=np.arange(40) % 4), "mcllo", form="score")
    assert np.isnan(verdict.pvalue)
    assert "TN237" in {note.code for note in verdict.notes}


def test_a_cluster_without_weight_is_none():
    y, P, cluster = in_clusters(np.random.default_rng(6), 40, 3)
    w = np.repeat([1.0, 0.0], [190, 10])
    subset, all_ = (
        to.test(to.Predictions(y[rows], P[rows], weight=w[rows], cluster=cluster[rows]), "mcllo")
        for rows in (w > 0, slice(None))
    )
    assert (subset.statistic, subset.settings["clusters"]) == (pytest.approx(all_.statistic), 38)
    assert subset.pvalue == pytest.approx(all_.pvalue)


def test_clusters_with_redraws_flip_signs_as_before():
    y, P, cluster = in_clusters(np.random.default_rng(7), 50, 3)
    preds = to.Predictions(y, P, cluster=cluster)
    verdict = to.test(preds, "mcllo", null="redraw", resamples=99)
    assert "signs flipped" in verdict.null
    assert verdict.settings["variance"] == "model"


def test_a_variance_of_single_rows_is_refused_where_there_are_none():
    rng = np.random.default_rng(8)
    p = rng.random(500)
    preds = to.Predictions((rng.random(500) < p).astype(int), p, cluster=np.arange(500) // 5)
    with refused("TO205"):
        to.test(preds, "mcllo", variance="model")
    with refused("TO403"):
        to.test(to.tally(to.Predictions(preds.y, p)), "mcllo", variance="empirical", lens="class:1")


# The baseline, and the prior


def test_all_baselines_are_the_reference_numbers():
    # golden/recalibration/mcllo.json: a fit for each baseline, and what it says of each row.
    rows, want = reference(), golden("recalibration/mcllo.json")
    result = Mcllo(baseline=3, baselines=True).evaluate(View(p=rows.P, y=rows.Y))
    for j in range(4):
        part, one = result.parts[f"baseline:{j}"], want[f"base{j}"]
        assert part["statistic"] == pytest.approx(one["lrt"], rel=1e-9)
        assert part["pvalue"] == pytest.approx(one["p_lrt"], rel=1e-7)
        others = Mcllo(baseline=j).evaluate(View(p=rows.P, y=rows.Y)).parts
        assert others["joint"]["likelihood_ratio"] == part["statistic"]
        moved = np.abs(_apply_mcllo(one, j, rows.P) - _apply_mcllo(want["base3"], 3, rows.P))
        assert part["largest_change"] == pytest.approx(moved.max(), abs=1e-7)
        assert part["mean_change"] == pytest.approx(moved.mean(), abs=1e-7)
    assert result.parts["baseline:3"]["largest_change"] == 0
    (text,) = [note.text for note in result.notes if note.code == "TN236"]
    assert "from 5.37e-29 to 4.85e-28" in text
    assert "baseline 3" in text


def _apply_mcllo(one, baseline, P):
    q = np.ones_like(P)
    q[:, one["categories"]] = np.exp(
        one["tau"] + np.array(one["gamma"]) * np.log(P / P[:, [baseline]])[:, one["categories"]]
    )
    return q / q.sum(axis=1, keepdims=True)


def test_a_baseline_may_be_named():
    P, y = draw_predictions(120, 3, 1.0, 5)
    names = ["cat", "dog", "truck"]
    preds = to.Predictions(np.array(names)[y], P, classes=names)
    named, first = (to.test(preds, "mcllo", baseline=baseline) for baseline in ("class:cat", 0))
    assert (named.settings["baseline"], named.statistic) == (0, first.statistic)
    with pytest.raises(to.InputError, match=r"TO203.*0 is cat, 1 is dog, 2 is truck.*'class:cow'"):
        to.test(preds, "mcllo", baseline="class:cow")
    with refused("TO203"):
        Mcllo(baseline="class:cat").evaluate(View(p=P, y=one_hot(y, 3)))


def test_of_two_classes_no_third_is_the_baseline():
    view = View(p=[0.2, 0.7, 0.6, 0.3], y=[0, 1, 0, 1])
    assert Mcllo(baseline=1).evaluate(view).statistic == Mcllo().evaluate(view).statistic
    with refused("TO203"):
        Mcllo(baseline=7).evaluate(view)


def test_two_classes_have_one_baseline():
    result = Mcllo(baselines=True).evaluate(View(p=[0.2, 0.7, 0.6, 0.3], y=[0, 1, 0, 1]))
    assert not any(name.startswith("baseline:") for name in result.parts)


def test_the_prior_multiplies_the_odds():
    view = drawn(400, 3, 9)
    even, likely = (Mcllo(prior=prior).evaluate(view).parts["joint"]["posterior"] for prior in (0.5, 0.8))
    assert likely / (1 - likely) == pytest.approx(4 * even / (1 - even))


def test_a_prior_that_changes_nothing_is_refused():
    P, y = draw_predictions(80, 3, 1.0, 5)
    for data, settings in (
        ({"weight": y + 1.0}, {}),
        ({"cluster": np.arange(80) // 2}, {}),
        ({}, {"variance": "empirical"}),
    ):
        with refused("TO205"):
            to.test(to.Predictions(y, P, **data), "mcllo", prior=0.8, **settings)


# Whose outcomes they are


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("settings", [{}, {"null": "redraw"}, {"variance": "empirical"}, {"form": "score"}])
def test_predictions_fitted_to_these_outcomes_are_refused(k, settings):
    P, y = draw_predictions(400, k, 1.6, k)
    Q = MclloSpec(baseline=1).fit(P[:200], one_hot(y[:200], k), np.ones(200)).apply(P)
    with refused("TO206", fix="cross_fitted"):
        to.test(to.Predictions(y[:200], Q[:200]), "mcllo", baseline=1, **settings)
    assert to.test(to.Predictions(y[200:], Q[200:]), "mcllo", baseline=1, **settings).statistic > 0.01


def test_so_are_those_of_two_classes_by_any_such_map_and_with_weights():
    P, y = draw_predictions(300, 2, 1.6, 10)
    w = np.random.default_rng(10).choice([1.0, 5.0], 300)
    for spec in (LloSpec(), BiasCorrectedTemperatureSpec()):
        with refused("TO206"):
            to.test(to.Predictions(y, spec.fit(P, one_hot(y), w).apply(P), weight=w), "mcllo")


def test_other_fits_leave_something_to_test():
    # Equal slopes leave K − 2 directions, another baseline and a penalty move the best map a little.
    P, y = draw_predictions(300, 4, 1.6, 11)
    Y, w = one_hot(y, 4), np.ones(300)
    for spec in (BiasCorrectedTemperatureSpec(), MclloSpec(baseline=0), MclloSpec(baseline=1, penalty=0.5)):
        assert Mcllo(baseline=1).evaluate(View(p=spec.fit(P, Y, w).apply(P), y=Y)).statistic > 1e-4


def test_residuals_that_cancel_as_whole_numbers_do_are_an_accident():
    # Ten rows each of .2, .4, .6, .8, of which 3, 3, 5, 9 came: residuals 1, −1, −1, 1 sum to 0, and so do
    # they times the log odds −a, −b, b, a. Every score is 0, of four values and two parameters, and no fit made them.
    p = np.repeat([0.2, 0.4, 0.6, 0.8], 10)
    y = np.concatenate([np.arange(10) < n_events for n_events in (3, 3, 5, 9)]).astype(float)
    result = Mcllo().evaluate(View(p=p, y=y))
    assert result.statistic == pytest.approx(0, abs=1e-12)
    assert result.pvalue == pytest.approx(1)


def test_saying_exactly_how_often_each_came_is_no_fit_of_this_kind():
    p = np.repeat([1 / 1009, 500 / 1009, 700 / 1009, 900 / 1009], 1009)
    y = np.concatenate([np.arange(1009) < n_events for n_events in (1, 500, 700, 900)]).astype(float)
    assert Mcllo().evaluate(View(p=p, y=y)).pvalue == pytest.approx(1)


@pytest.mark.slow
def test_ordinary_small_data_are_never_refused():
    rng = np.random.default_rng(12)
    for repetition in range(300):
        k = 2 + repetition % 3
        P = (rng.multinomial(6, np.full(k, 1 / k), 24) + 1) / (6 + k)
        if repetition % 2:
            P = np.repeat(P[:6], 4, axis=0)
        if repetition % 5 == 0:  # values that are no fractions
            P = rng.dirichlet(np.ones(k), 24)
        Mcllo(form="score").evaluate(View(p=P, y=one_hot(labels(P, rng), k)))
    # All right: the scores are small, and do not cancel.
    tiny = 1e-5 / np.pi ** np.arange(1, 9)
    p = np.concatenate([tiny, 1 - tiny])
    assert Mcllo(form="score").evaluate(View(p=p, y=p > 0.5)).pvalue > 0.9


@pytest.mark.parametrize("k", [2, 3])
def test_what_rounding_leaves_of_a_fit_is_noted(k):
    P, y = draw_predictions(600, k, 1.6, k)
    Q = to.fit(to.Predictions(y, P), "mcllo").predict_proba(P)
    for rounded in (Q.astype(np.float16), np.round(Q, 3).clip(1e-3)):
        R = rounded / rounded.sum(axis=1, keepdims=True, dtype=np.float64)
        verdict = to.test(to.Predictions(y, R), "mcllo")
        assert verdict.pvalue > 0.999
        (text,) = [note.text for note in verdict.notes if note.code == "TN238"]
        assert text.startswith(f"The statistic {verdict.statistic:.2g} is unusually small")
    assert "TN238" not in {note.code for note in to.test(to.Predictions(y, P), "mcllo").notes}


@pytest.mark.slow
def test_rates_of_bins_and_steps_on_their_own_rows_are_noted_and_chance_is_not():
    P, y = draw_predictions(600, 2, 1.6, 2)
    preds = to.Predictions(y, P[:, 1])
    for method in ("histogram", "isotonic"):
        Q = to.fit(preds, method).predict_proba(P[:, 1]).clip(1e-6, 1 - 1e-6)
        assert "TN238" in {note.code for note in to.test(to.Predictions(y, Q[:, 1]), "mcllo").notes}
    # Of 500 data sets χ² goes below by chance in one of 2,000; decimals, few rows, and clusters of equal predictions.
    rng = np.random.default_rng(13)
    for repetition in range(500):
        p = rng.integers(1, 10, 20) / 10 if repetition % 2 else np.repeat(rng.random(6), 4)
        result = Mcllo(form="score").evaluate(View(p=p, y=rng.random(len(p)) < p))
        assert "TN238" not in {note.code for note in result.notes}
