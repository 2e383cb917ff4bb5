"""The omnibus test: component statistics by their formulas, level, and power."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from scipy.stats import binom

import trueodds as to
from tests.data.refused import refused
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.omnibus import Omnibus, debiased_rms_error, log_pvalues, negative_log_harmonic_mean, surprisal
from trueodds.hypotests.omnibus_components import (
    BINARY_COMPONENTS,
    NODE_COUNTS,
    BinaryCells,
    Component,
    VectorLeaves,
    vector_components,
)
from trueodds.kernels.partitions import nested_cells
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


def binary_view(n=60, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return View(p, (rng.random(n) < p).astype(float), rng.uniform(0.5, 2, n) if weighted else None)


def rejections(make, sets, **settings):
    return sum(
        to.test(make(seed), "omnibus", resamples=99, rng=seed, **settings).pvalue <= 0.05 for seed in range(sets)
    )


def two_classes(seed, n=150, temperature=1.0, votes=0, clusters=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1.5, n)
    q = expit(x / temperature)
    if votes:
        yes = rng.binomial(votes, q)
        return to.Predictions(np.stack([votes - yes, yes], axis=1), expit(x))
    if clusters:  # rows of a cluster share their prediction and three in four times their label
        which = np.arange(n) // clusters
        x, u = x[which * clusters], rng.random(n)
        u = np.where(rng.random(n) < 0.75, u[which * clusters], u)
        return to.Predictions((u < expit(x / temperature)).astype(int), expit(x), cluster=which)
    return to.Predictions((rng.random(n) < q).astype(int), expit(x))


def several_classes(seed, n=300, k=5, temperature=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.6, (n, k))
    Q = softmax(z / temperature, axis=1)
    return to.Predictions((Q.cumsum(axis=1)[:, :-1] <= rng.random((n, 1))).sum(axis=1), softmax(z, axis=1))


# The statistics


def test_level_and_slope_of_single_rows_are_the_score_statistic_of_coxs_regression():
    view = binary_view(weighted=False)
    level, slope, both, *_ = Omnibus().cell_statistic(view).value()
    r, v, x = view.y - view.p, view.p * (1 - view.p), np.log(view.p / (1 - view.p))
    assert level == pytest.approx(r.sum() / np.sqrt(v.sum()), rel=1e-12)
    assert slope == pytest.approx((x * r).sum() / np.sqrt((x * x * v).sum()), rel=1e-12)
    assert both == pytest.approx(Cox(null="redraw").evaluate(view).statistic, rel=1e-9)


def test_squares_are_sums_over_pairs_of_different_rows_in_nodes_of_equal_mass():
    view = binary_view(64, weighted=False)
    order, r, v = np.argsort(view.p), view.y - view.p, view.p * (1 - view.p)
    squares = Omnibus().cell_statistic(view).value()[3:]
    for m, value in zip(NODE_COUNTS, squares, strict=True):
        expected = 0.0
        for node in np.split(order, m):
            expected += sum(r[i] * r[j] for i in node for j in node if i != j) / v[node].sum()
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_rows_that_share_a_cell_lose_their_squares_too():
    # Ten rows at .3: the cell is the only node, and Σ_{i≠j} r_i r_j is (Σ r)² − Σ r².
    view = View([0.3] * 10 + [0.6] * 10, [1] * 5 + [0] * 5 + [1] * 6 + [0] * 4)
    cells = BinaryCells(view)
    assert cells.size == 2
    r = view.y - 0.3
    expected = (r[:10].sum() ** 2 - (r[:10] ** 2).sum()) / (10 * 0.21)
    second = view.y[10:] - 0.6
    expected += (second.sum() ** 2 - (second**2).sum()) / (10 * 0.24)
    assert Omnibus().cell_statistic(view).value()[3] == pytest.approx(expected, rel=1e-12)


def test_shares_of_votes_lose_the_squares_of_whole_rows():
    view = View([0.3, 0.3, 0.6, 0.6], [0.4, 0.2, 1.0, 0.6])
    a, b = (view.y - view.p)[:2], (view.y - view.p)[2:]
    assert Omnibus().cell_statistic(view).value()[3] == pytest.approx(2 * a[0] * a[1] / 0.42 + 2 * b[0] * b[1] / 0.48)


def test_vectors_are_tested_in_the_direction_of_a_temperature_and_by_classes():
    rng = np.random.default_rng(3)
    P = softmax(rng.normal(0, 1, (50, 3)), axis=1)
    Y = np.eye(3)[(P.cumsum(axis=1)[:, :-1] <= rng.random((50, 1))).sum(axis=1)]
    temperature, largest, levels, _, slopes, *_ = Omnibus().cell_statistic(View(P, Y)).value()
    R, V, x = Y - P, P * (1 - P), np.log(P / (1 - P))
    z = R.sum(axis=0) / np.sqrt(V.sum(axis=0))
    x = x - (x * V).sum(axis=0) / V.sum(axis=0)
    slope = (R * x).sum(axis=0) / np.sqrt((V * x * x).sum(axis=0))
    assert temperature == pytest.approx((np.log(P) * R).sum(), rel=1e-9)
    assert (largest, levels, slopes) == pytest.approx((np.abs(z).max(), (z**2).sum(), (slope**2).sum()), rel=1e-9)


def test_squares_of_vectors_leave_out_each_rows_own():
    rng = np.random.default_rng(4)
    P = rng.dirichlet([1, 2, 3], 40)
    Y = np.eye(3)[rng.integers(0, 3, 40)]
    leaves = VectorLeaves(View(P, Y))
    V, R = P * (1 - P), Y - P
    scale = V.sum() / V.sum(axis=0)
    node = leaves.nodes.node_of_cell(leaves.index, 4)
    assert len(np.unique(node)) == 4
    expected = sum(((R[node == g].sum(axis=0) ** 2 - (R[node == g] ** 2).sum(axis=0)) * scale).sum() for g in range(4))
    assert Omnibus().cell_statistic(View(P, Y)).value()[5] == pytest.approx(expected, rel=1e-9)


def test_leaves_do_not_depend_on_the_order_of_rows_and_hold_equal_vectors_together():
    rng = np.random.default_rng(0)
    x = np.round(rng.dirichlet([1, 1, 1], 200), 1)
    order = rng.permutation(200)
    place = nested_cells(x, 6)
    assert (nested_cells(x[order], 6) == place[order]).all()
    assert all(len(np.unique(place[(x == vector).all(axis=1)])) == 1 for vector in np.unique(x, axis=0))
    two = np.concatenate([0.2 + 0.01 * rng.random(30), 0.8 + 0.01 * rng.random(90)])  # the median cuts the larger
    assert (nested_cells(two[:, None], 1) == (two > 0.5)).all()


def test_the_effect_is_the_debiased_root_mean_square_between_nodes():
    view = View([0.2] * 100 + [0.8] * 100, [1] * 30 + [0] * 70 + [1] * 70 + [0] * 30)  # 10 points off at both
    node = (view.p > 0.5).astype(int)
    a = np.array([0.8] * 30 + [-0.2] * 70)
    expected = (a.sum() ** 2 - (a**2).sum()) / (100 * 99)  # the same at both
    assert debiased_rms_error(view, node) == pytest.approx(np.sqrt(expected), rel=1e-12)
    assert Omnibus().evaluate(view).effect == pytest.approx(np.sqrt(expected), rel=1e-12)


def test_p_values_of_a_fitted_law_follow_their_order_and_are_right_for_that_law():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 7, 20_000)
    p = np.exp(log_pvalues(z, Component("z", 1)))
    assert (np.diff(p[np.argsort(np.abs(z))]) <= 0).all()
    assert np.quantile(p, [0.01, 0.05, 0.5]) == pytest.approx([0.01, 0.05, 0.5], rel=0.15)
    chi = np.exp(log_pvalues(rng.chisquare(4, 20_000) - 4, Component("u", 1, df=4, is_centered=True)))
    assert np.quantile(chi, [0.01, 0.05, 0.5]) == pytest.approx([0.01, 0.05, 0.5], rel=0.2)


def test_the_combination_is_the_weighted_harmonic_mean_without_what_is_not_defined():
    log_p = np.log([[0.01], [0.5], [np.nan]])
    assert np.exp(negative_log_harmonic_mean(log_p, np.array([1.0, 3.0, 5.0]))) == pytest.approx(
        [(1 / 0.01 + 3 / 0.5) / 4]
    )


def test_surprise_is_the_rank_below_the_upper_tenth_and_keeps_the_order_above():
    values = np.random.default_rng(1).standard_exponential(1000)
    surprises = surprisal(values)
    assert (np.argsort(surprises, kind="stable") == np.argsort(values, kind="stable")).all()
    assert np.exp(-np.sort(surprises)[500]) == pytest.approx(0.5)
    assert surprises.max() == pytest.approx(values.max(), rel=0.35)  # of an exponential law it is the value itself


# Level and power


@pytest.mark.slow
@pytest.mark.parametrize("how", [{}, {"votes": 5}, {"clusters": 3, "n": 450}], ids=["labels", "votes", "clusters"])
def test_calibrated_models_are_rejected_as_often_as_the_level_says(how):
    sets = 200
    assert rejections(lambda seed: two_classes(seed, **how), sets) <= binom.ppf(0.9999, sets, 0.06)


@pytest.mark.slow
def test_calibrated_vectors_are_rejected_as_often_as_the_level_says():
    lenses, sets = ["confidence", "classwise", "canonical"], 80
    assert rejections(several_classes, sets, lens=lenses) <= binom.ppf(0.9999, sets, 0.05)


def test_an_underconfident_model_of_150_rows_is_seen_where_its_ece_could_be_chance():
    # Spiegelhalter's z rejects 77 to 83 % here, the ECE 12 to 15 %.
    sets = [two_classes(seed, temperature=0.6) for seed in range(60)]
    omnibus = sum(to.test(preds, "omnibus", resamples=99).pvalue <= 0.05 for preds in sets)
    ece = sum(to.test(preds, "consistency", resamples=99).pvalue <= 0.05 for preds in sets)
    assert omnibus >= binom.ppf(0.001, 60, 0.55) > binom.ppf(0.999, 60, 0.15) >= ece


def test_the_whole_vector_shows_what_underconfidence_hides_from_its_error():
    # Outcomes vary less than the probabilities say: total variation over leaves of ten rows has p near 1.
    sets = [several_classes(seed, n=400, k=10, temperature=0.55) for seed in range(5)]
    assert all(to.test(preds, "omnibus", lens="canonical", resamples=99).pvalue == 0.01 for preds in sets)
    small = {"lens": "canonical", "resamples": 99, "min_size": 10}
    assert np.median([to.test(preds, "consistency", **small).pvalue for preds in sets]) > 0.5


@pytest.mark.slow
def test_all_votes_are_tested_and_not_one_drawn_vote():
    sets = [two_classes(seed, n=200, temperature=0.7, votes=5) for seed in range(30)]
    first = [to.test(preds, "omnibus", resamples=199, rng=1).pvalue for preds in sets]
    second = [to.test(preds, "omnibus", resamples=199, rng=2).pvalue for preds in sets]
    assert np.mean(np.array(first) <= 0.05) >= 0.7
    assert np.abs(np.array(first) - second).max() < 0.15  # 199 draws, not one vote or another


# What must not matter, and what is at the edge


def test_scaled_weights_give_the_same_p():
    preds = two_classes(1)
    w = np.random.default_rng(0).uniform(1, 2, 150)
    a, b = (
        to.test(to.Predictions(preds.y, preds.p, weight=c * w), "omnibus", resamples=99).pvalue for c in (1.0, 1024.0)
    )
    assert a == b


@pytest.mark.parametrize("p", [[0.5] * 20, [0.0, 1.0] * 10, [0.3] * 10 + [0.7] * 10, [0.3]])
def test_few_different_predictions_have_an_answer(p):
    verdict = to.test(to.Predictions(np.arange(len(p)) % 2, p), "omnibus", resamples=99)
    assert 0.01 <= verdict.pvalue <= 1


def test_an_outcome_that_was_called_impossible_is_at_the_floor():
    p = [0.0] * 10 + [1.0] * 10
    assert to.test(to.Predictions([1] + [0] * 9 + [1] * 10, p), "omnibus", resamples=99).pvalue == 0.01


@pytest.mark.slow
def test_more_draws_are_made_where_the_p_value_is_near_a_usual_level():
    counts = {}
    for seed in range(40):
        verdict = to.test(two_classes(seed), "omnibus")
        counts[verdict.settings["resamples"]] = verdict.pvalue
    assert set(counts) == {999, 4999}
    assert to.test(two_classes(0), "omnibus", resamples=99).settings["resamples"] == 99


def test_a_family_of_lenses_weighs_its_claims_and_a_single_one_stays_as_it_is():
    preds = several_classes(0, temperature=0.6)
    family = to.test(preds, "omnibus", lens=["confidence", "canonical"], resamples=199)
    alone = to.test(preds, "omnibus", lens="confidence", resamples=199)
    assert family.parts["confidence"]["pvalue"] == alone.pvalue
    assert family.pvalue == family.family_pvalue
    claims = Omnibus(resamples=199).verdicts(
        preds, [as_lens("confidence"), as_lens("canonical")], np.random.default_rng(0)
    )
    assert [claim.lens for claim in claims] == ["family", "confidence", "canonical"]


def test_a_tally_answers_too():
    preds = two_classes(0, n=2000, temperature=0.7)
    rows, cells = (to.test(data, "omnibus", resamples=199).pvalue for data in (preds, to.tally(preds)))
    assert rows == cells == 0.005


def test_the_effect_of_vectors_from_a_tally_is_that_of_their_rows():
    # 10 rows with the prediction (.2, .3, .5) and the labels 4, 3, 3; 10 with (.6, .3, .1) and the labels 6, 1, 3.
    # So few rows are one node, with the debiased square Σ_k (R² − Σ(y − p)²) / (20² − 20) of the residual sums
    # R = (2, −2, 0) and the squares Σ(y − p)² = 2.8 + 2.1 + 2.5 and 2.4 + 1.3 + 2.5: (8 − 13.6) / 380.
    P = np.repeat([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], 10, axis=0)
    preds = to.Predictions(np.repeat([0, 1, 2, 0, 1, 2], [4, 3, 3, 6, 1, 3]), P)
    for data in (preds, to.tally(preds, lenses=["canonical"], grid=10)):
        assert to.test(data, lens="canonical", resamples=19).effect == pytest.approx(-((5.6 / 380) ** 0.5))


@pytest.mark.parametrize("method", ["omnibus", "consistency", "hosmer_lemeshow"])
def test_vectors_of_a_tally_of_votes_are_refused_because_their_null_distribution_is_unknown(method):
    """Labels were drawn instead of votes: p = 1, the text of sign flips, and an effect of −.12 instead of .002."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3) * 2, 200)
    tally = to.tally(to.Predictions(np.stack([rng.multinomial(5, p) for p in P]), P), lenses=["canonical"], grid=10)
    settings = {"null": "redraw"} if method == "hosmer_lemeshow" else {}
    with refused("TO403", "a tally of votes"):
        to.test(tally, method, lens="canonical", resamples=19, **settings)
    with refused("TO403", "a tally of votes"):
        to.measure(tally, "ece", lens="canonical")
    assert to.measure(tally, "ece", lens="canonical", interval=None).noise_floor is None


@pytest.mark.parametrize("component", [*BINARY_COMPONENTS, *vector_components(3)], ids=lambda component: component.name)
def test_p_values_of_components_do_not_depend_on_their_scale(component):
    """The squares of statistics of 1e200, of an outcome that was almost impossible, overflowed."""
    pool = np.append(np.random.default_rng(0).random(40), 7.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(log_pvalues(1e200 * pool, component), log_pvalues(pool, component), rtol=1e-9)


def test_so_few_draws_that_nothing_can_be_rejected_are_noted():
    # Nine draws: the smallest p-value is .1. Nineteen: it is .05, but three classes after Holm's correction have .15.
    y, p = [0, 1] * 50, [0.4, 0.6] * 50
    codes = {resamples: {note.code for note in to.test(y, p, resamples=resamples).notes} for resamples in (9, 19)}
    assert ("TN209" in codes[9], "TN209" in codes[19]) == (True, False)
    three = to.Predictions([0, 1, 2] * 20, np.full((60, 3), 1 / 3))
    assert "TN209" in {note.code for note in to.test(three, lens="classwise", resamples=19).notes}


@pytest.mark.slow
def test_borderline_p_values_have_more_draws_of_labels_but_not_of_rows():
    # At least 18 events of 20 with p = .7 have probability .035.
    y, p = [1] * 18 + [0] * 2, [0.7] * 20
    verdicts = {redraw: to.test(y, p, redraw=redraw) for redraw in ("labels", "both")}
    assert all(0.005 <= verdict.pvalue <= 0.15 for verdict in verdicts.values())
    assert {redraw: verdict.settings["resamples"] for redraw, verdict in verdicts.items()} == {
        "labels": 4999, "both": 999
    }  # fmt: skip
