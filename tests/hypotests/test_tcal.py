"""T-Cal: the authors' numbers at each scale, one set of draws for all scales, its level, and its vectors."""

import math

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.rates import rate_is_at_level
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.estimators.debiased import DebiasedL2
from trueodds.hypotests.multiple_testing import family_pvalue
from trueodds.hypotests.tcal import TCal, n_scales
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws


def binary500():
    rows = reference.frame("estimators/c_binary500.csv")
    return to.Predictions(rows["y"].astype(int), rows["p"])


def calibrated(rng, n, k):
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, k - 1), P)


def test_the_reference_values_of_six_scales():
    # golden c.tcal_dpe: the authors' plugin_ece gives the same to 1e-16
    known = reference.estimators()
    parts = to.test(binary500(), "tcal", resamples=19).parts
    for m in (2, 4, 8, 16, 32, 64):
        assert parts[f"{m} bins"]["statistic"] == pytest.approx(known[f"c.tcal_dpe.m{m}"]["value"], rel=1e-12)
        assert parts[f"{m} bins"]["effect"] == pytest.approx(math.sqrt(known[f"c.tcal_dpe.m{m}"]["value"]), rel=1e-12)


def test_the_reference_p_values_of_six_scales():
    # golden c.tcal_scale_pvalues_first6, from 199 draws of its own: 1/200 to 2/200.
    # Ours from 1999 on other draws may be apart by 3.3 standard errors of the coarser one, at p = .02 that is .033.
    known = reference.estimators()["c.tcal_scale_pvalues_first6"]["value"]
    parts = to.test(binary500(), "tcal", resamples=1999).parts
    for m, p in known.items():
        assert abs(parts[f"{m} bins"]["pvalue"] - p) < 0.033


def test_how_many_scales():
    assert n_scales(500) == reference.estimators()["c.tcal_adaptive_scales"]["value"] == 15
    # 500 rows have no 512 bins to fill: 2 to 256; of three classes the cells are m², so 4² ≤ 500 < 32²
    assert to.test(binary500(), "tcal", resamples=9).settings["scales"] == [2, 4, 8, 16, 32, 64, 128, 256]
    three = calibrated(np.random.default_rng(0), 500, 3)
    assert to.test(three, "tcal", lens="canonical", resamples=9).settings["scales"] == [2, 4, 8, 16]
    many = calibrated(np.random.default_rng(0), 50, 30)
    assert to.test(many, "tcal", lens="canonical", resamples=9).settings["scales"] == [2]
    assert TCal().bins_per_scale(View([0.3], [1])) == [2]


def test_one_scale_by_its_number_or_by_smoothness():
    preds = binary500()
    # ⌊500^(2/5)⌋ = ⌊12.01⌋; vectors of 3: ⌊500^(2/6)⌋ = ⌊7.94⌋
    assert to.test(preds, "tcal", smoothness=1, resamples=9).settings["scales"] == [12]
    three = calibrated(np.random.default_rng(0), 500, 3)
    assert to.test(three, "tcal", lens="canonical", smoothness=1, resamples=9).settings["scales"] == [7]
    verdict = to.test(preds, "tcal", bins=10, resamples=9)
    view = as_lens("positive").views(preds)[0]
    assert verdict.statistic == pytest.approx(DebiasedL2(Uniform(10), form="dpe").signed_value(view), rel=1e-12)
    for settings, code in (
        ({"bins": 10, "smoothness": 1}, "TO205"),
        ({"smoothness": 0}, "TO203"),
        ({"smoothness": "1"}, "TO203"),
        ({"bins": 0}, "TO203"),
        ({"bins": "sqrt"}, "TO203"),
        ({"null": "asymptotic"}, "TO203"),
    ):
        with pytest.raises(to.InputError, match=code):
            TCal(**settings)


@pytest.mark.parametrize("lens", ["class:1", "canonical"])
def test_nested_sums_are_those_of_each_grid(lens):
    # every scale is read off the finest one; decimal scores lie on edges
    rng = np.random.default_rng(1)
    P = rng.multinomial(20, [0.5, 0.3, 0.2], 300) / 20
    y = np.array([rng.choice(3, p=p) for p in P])
    w = rng.gamma(1, 1, 300) * (rng.random(300) > 0.1)
    preds = to.Predictions(y, P, weight=w)
    (view,) = as_lens(lens).views(preds)
    test = TCal()
    values = test.cell_statistic(view).value()
    for value, m in zip(values, test.bins_per_scale(view), strict=False):
        if lens == "canonical":
            cells, total = SimplexGrid(m).fit(view).index(view.partition_values), 0.0
            u = w[:, None] * (view.y - view.p)
            for c in np.unique(cells[w > 0]):
                inside = cells == c
                total += ((u[inside].sum(axis=0) ** 2).sum() - (u[inside] ** 2).sum()) / w[inside].sum()
            assert value == pytest.approx(total / w.sum(), rel=1e-10, abs=1e-14)
        else:
            # scores on an edge count with the bin below and with the one above
            both = [DebiasedL2(Uniform(m, closed=c), form="dpe").signed_value(view) for c in ("left", "right")]
            assert value == pytest.approx(np.mean(both), rel=1e-10, abs=1e-14)


def test_all_scales_share_their_draws_and_the_smallest_p_is_adjusted_for_them():
    preds = calibrated(np.random.default_rng(2), 80, 2)
    verdict = to.test(preds, "tcal", resamples=99, rng=5)
    (view,) = as_lens("positive").views(preds)
    levels = TCal().bins_per_scale(view)
    # each scale as a question of its own, on the same draws: signed, so that the tails are the same
    by_scale = [_Signed(Uniform(m), form="dpe") for m in levels]
    estimands = [Estimand(one, as_lens("positive"), (view,)) for one in by_scale]
    draws = null_draws(preds, estimands, 99, np.random.default_rng(5))
    values = np.array([one.value(view) for one in by_scale])
    assert verdict.pvalue == family_pvalue(values, np.concatenate(draws))


class _Signed(DebiasedL2):
    def value(self, view):
        return self.signed_value(view)

    def statistic_from_pairs(self, w, residual, squares, ww):
        return self._theta_from_pairs(w, residual, squares, ww)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "lens"), [(2, "positive"), (3, "canonical"), (3, ["confidence", "classwise"])])
def test_size_under_the_null(k, lens):
    rng = np.random.default_rng(3)
    verdicts = (to.test(calibrated(rng, 50, k), "tcal", lens=lens, resamples=99, rng=seed) for seed in range(200))
    assert rate_is_at_level((verdict.pvalue <= 0.05 for verdict in verdicts), 0.05, excluded=0.15)


def test_an_error_that_changes_from_score_to_score_is_found_at_a_fine_scale():
    # outcomes at p ± .25, by the parity of sixteenths: bins of an eighth and more see nothing
    rng = np.random.default_rng(4)
    p = rng.uniform(0.25, 0.75, 3000)
    r = p + np.where(np.ceil(16 * p) % 2 == 0, 0.25, -0.25)
    verdict = to.test(to.Predictions((rng.random(3000) < r).astype(int), p), "tcal")
    assert verdict.pvalue == 0.001
    assert verdict.parts["4 bins"]["pvalue"] > 0.001
    assert verdict.statistic == verdict.parts["16 bins"]["statistic"]
    assert 0.2 < verdict.effect < 0.3


def test_a_family_has_each_lens_with_holms_p_and_the_null_says_how_scales_are_adjusted():
    preds = calibrated(np.random.default_rng(6), 100, 3)
    verdict = to.test(preds, "tcal", lens=["confidence", "canonical"], resamples=99)
    alone = to.test(preds, "tcal", lens="canonical", resamples=99)
    assert verdict.parts["canonical"]["pvalue"] == alone.pvalue
    assert "all scales" in alone.null
    assert alone.parts["2 bins"]["holm"] >= alone.parts["2 bins"]["pvalue"]


def test_clusters_and_resampled_rows():
    rng = np.random.default_rng(7)
    p = np.repeat(rng.random(60), 5)
    y = np.repeat((rng.random(60) < p[::5]).astype(int), 5)
    cluster = np.repeat(np.arange(60), 5)
    assert to.test(to.Predictions(y, p), "tcal", resamples=99).pvalue == 0.01
    assert to.test(to.Predictions(y, p, cluster=cluster), "tcal", resamples=99).pvalue > 0.05
    assert to.test(to.Predictions(y[::5], p[::5]), "tcal", redraw="both", resamples=39).pvalue > 0.05


def test_a_tally_has_the_scales_that_its_cells_nest():
    rng = np.random.default_rng(8)
    p = rng.random(3000)
    preds = to.Predictions((rng.random(3000) < p**1.2).astype(int), p)
    rows, cells = to.test(preds, "tcal", resamples=99), to.test(to.tally(preds), "tcal", resamples=99)
    assert cells.settings["scales"] == rows.settings["scales"][:8]
    for name, part in cells.parts.items():
        assert part["statistic"] == pytest.approx(rows.parts[name]["statistic"], rel=1e-4, abs=1e-6)
    with pytest.raises(to.InputError, match="TO205"):
        to.test(to.tally(calibrated(rng, 50, 3), grid=4), "tcal", lens="canonical")


def test_a_tally_of_votes_flips_the_signs_of_residuals():
    rng = np.random.default_rng(9)
    votes = rng.multinomial(5, [0.4, 0.6], 50)
    verdict = to.test(to.tally(to.Predictions(votes, np.full(50, 0.6))), "tcal", resamples=99)
    assert 0 < verdict.pvalue <= 1
    assert "flipped" in verdict.null


@pytest.mark.parametrize("scores", [8, 10, 64])
def test_scores_on_edges_count_the_same_for_the_complement(scores):
    # eighths and 64ths lie on the edges of the grids, tenths on that at 1/2 alone
    rng = np.random.default_rng(7)
    p = rng.integers(0, scores + 1, 400) / scores
    y = (rng.random(400) < np.clip(p + 0.1 * np.sin(9 * p), 0, 1)).astype(int)
    one, other = (TCal().evaluate(View(*columns)).parts for columns in ((p, y), (1 - p, 1 - y)))
    for name, part in one.items():
        assert part["statistic"] == pytest.approx(other[name]["statistic"], abs=1e-12), name


def test_a_score_on_an_edge_is_counted_with_both_neighbors():
    # 2 bins, u = −.25, .5, −.75 at .25, .5 and .75. With the lower bin: (.25² − .3125)/2 + 0 = −.125; with the upper
    # one: 0 + ((−.25)² − .8125)/2 = −.375. Their mean is −.25, over 3 rows.
    result = TCal(bins=2).evaluate(View(p=[0.25, 0.5, 0.75], y=[0, 1, 0]))
    assert result.parts["2 bins"]["statistic"] == pytest.approx(-0.25 / 3)


def test_permuting_classes_permutes_every_scale():
    rng = np.random.default_rng(8)
    P = rng.multinomial(20, [0.5, 0.3, 0.2], 200) / 20
    y = np.array([rng.choice(3, p=p) for p in P])
    order = np.array([2, 0, 1])  # new column j is old class order[j]
    old, new = to.Predictions(y, P), to.Predictions(np.argsort(order)[y], P[:, order])
    for j, k in enumerate(order):
        (a,), (b,) = as_lens(f"class:{k}").views(old), as_lens(f"class:{j}").views(new)
        np.testing.assert_allclose(TCal().cell_statistic(a).value(), TCal().cell_statistic(b).value(), rtol=1e-10)
