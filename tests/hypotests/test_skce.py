"""The kernel tests agree with the published ones and keep their level."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds.core.typing import Array
from trueodds.hypotests.skce import KernelTest, bootstrap_statistics, centered_statistic, pvalue_bound_unbiased
from trueodds.kernels.random_labels import draw_labels_by_row
from trueodds.lenses.view import View


@cache
def anchors() -> Any:
    return reference.golden("anchors/golden.json")


def one_hot(P: Array, y: Array) -> View:
    return View(P, np.eye(P.shape[1])[np.asarray(y, dtype=int)], classes=P.shape[1])


def first_200() -> View:
    table = reference.frame("estimators/b_multi1000.csv")
    return one_hot(reference.columns(table)[:200], table["y"][:200])


def calibrated(n: int, seed: int, k: int = 3) -> to.Predictions:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions((P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), P)


def codes(verdict: Any) -> list[str]:
    return [note.code for note in verdict.notes]


def test_the_bound_by_hand() -> None:
    # Four rows that say ½ and all come: every residual is (−½, ½), so U = V = ½; B = 2.
    view = View(p=[[0.5, 0.5]] * 4, y=[[0, 1]] * 4)
    unbiased = KernelTest(null="distribution-free").evaluate(view)
    assert (unbiased.statistic, unbiased.effect) == (0.5, math.sqrt(0.5))
    assert unbiased.pvalue == pytest.approx(math.exp(-2 * 0.25**2 / 2))  # ⌊4/2⌋ pairs
    biased = KernelTest(null="distribution-free", form="biased").evaluate(view)
    assert biased.pvalue == 1.0  # √(4 · ½ / 2) − 1 = 0


def test_a_strongly_negative_statistic_is_no_evidence() -> None:
    # Squared without its sign U = −1/199 · 100 … would give a small p: residuals that cancel as well as they can.
    preds = to.Predictions([0, 1] * 100, np.full(200, 0.5))
    verdict = to.test(preds, "skce", null="distribution-free")
    assert verdict.statistic == pytest.approx(-0.5 / 199)
    assert verdict.pvalue == 1.0
    assert pvalue_bound_unbiased(-2.0, 1000) == 1.0
    assert pvalue_bound_unbiased(2.0, 1000) == pytest.approx(math.exp(-250))
    assert to.test(preds, "skce", resamples=99).pvalue > 0.5


@pytest.mark.reference
def test_the_reference_numbers_of_200_rows() -> None:
    # Computed from explicit expectations, first 200 rows, k = exp(−‖p − q‖).
    view, truth = first_200(), reference.estimators()
    settings: dict[str, Any] = {"bandwidth": 1.0}
    redraw = KernelTest(**settings).evaluate(view)
    assert redraw.statistic == pytest.approx(truth["b200.skce_uq_exp_l2_nu1"]["value"], rel=1e-10)
    assert redraw.effect == pytest.approx(math.sqrt(redraw.statistic), rel=1e-14)
    for size, key in ((2, "b200.skce_ul_exp_l2_nu1"), (20, "b200.skce_block20")):
        result = KernelTest(null="block", block_size=size, **settings).evaluate(view)
        assert result.statistic == pytest.approx(truth[key]["z"], rel=1e-10)
        assert result.pvalue == pytest.approx(truth[key]["p_value"], rel=1e-10)
        assert result.parts["blocks"]["mean"] == pytest.approx(truth[key]["value"], rel=1e-10)
    bounds = truth["b200.skce_distribution_free_p"]["value"]
    for form in ("unbiased", "biased"):
        result = KernelTest(null="distribution-free", form=form, **settings).evaluate(view)
        assert result.pvalue == pytest.approx(bounds[form], rel=1e-12)


@pytest.mark.reference
def test_the_bootstrap_draws_what_the_reference_draws() -> None:
    # The same 1,000 draws of rows: 98 of them reach the observed value.
    truth = reference.estimators()["b200.skce_asymptotic_boot"]["value"]
    test = KernelTest(null="bootstrap", bandwidth=1.0, resamples=truth["R"])
    result = test.evaluate_with_draws(first_200(), np.random.default_rng(0))
    assert result.statistic == pytest.approx(truth["statistic"], rel=1e-9)
    assert result.pvalue == pytest.approx(truth["p_plus1"], rel=1e-12)


@pytest.mark.reference
def test_labels_drawn_as_the_reference_draws_them_give_its_hits() -> None:
    # 999 draws by inverse distribution functions of default_rng(1): 70 reach the observed U.
    truth, view = reference.estimators()["b200.skce_uq_label_mc"]["value"], first_200()
    rng = np.random.default_rng(1)
    cumulative = np.cumsum(view.p, axis=1)
    labels = np.stack([(cumulative < rng.random(200)[:, None]).sum(axis=1) for _ in range(truth["R"])], axis=1)
    pairs = KernelTest(bandwidth=1.0).cell_statistic(view)
    assert pairs.statistic_from_labels is not None
    draws = pairs.statistic_from_labels(np.minimum(labels, view.p.shape[1] - 1).astype(np.uint8))
    assert (draws >= pairs.value() * (1 - 1e-10)).sum() == truth["count_ge"]


@pytest.mark.reference
@pytest.mark.parametrize("data", ["g3_200", "g3cal_200"])
@pytest.mark.parametrize(
    ("key", "kernel"), [("exp_euclid", "exponential"), ("exp_tv", "tv-exponential"), ("sqexp_euclid", "gaussian")]
)
def test_the_numbers_of_the_julia_package_s_formulas(data: str, key: str, kernel: str) -> None:
    table = reference.frame(f"anchors/synthetic/{data}.csv")
    view = one_hot(reference.columns(table), table["y"])
    truth = anchors()["kernel_and_ece"][data]["skce"][key]
    settings: dict[str, Any] = {"kernel": kernel, "bandwidth": 1.0}
    for size, block in truth["block"].items():
        result = KernelTest(null="block", block_size=int(size), **settings).evaluate(view)
        assert result.statistic == pytest.approx(block["z"], rel=1e-9)
        assert result.pvalue == pytest.approx(block["pvalue"], rel=1e-9)
        assert result.parts["blocks"]["stderr"] == pytest.approx(block["stderr"], rel=1e-10)
        assert result.parts["blocks"]["count"] == block["df_blocks"]
    pairs = KernelTest(**settings).cell_statistic(view)
    assert centered_statistic(pairs) == pytest.approx(truth["asymptotic_statistic"], rel=1e-9)
    for form in ("unbiased", "biased"):
        result = KernelTest(null="distribution-free", form=form, **settings).evaluate(view)
        assert result.pvalue == pytest.approx(truth[f"distribution_free_p_{form}"], rel=1e-12)


@pytest.mark.reference
@pytest.mark.parametrize("net", ["densenet121", "resnet18", "inception_v3", "vgg16_bn"])
def test_the_published_p_values_of_four_real_nets(net: str) -> None:
    # 10,000 images in pairs. float32 probabilities move U by up to 1e-10, which is 3e-7 of its standard error.
    truth, arrays = anchors()["cifar10"][net], reference.data("widmann_cifar10_4nets.npz")
    view = one_hot(arrays[f"probs_{net}"], arrays["labels"])
    settings: dict[str, Any] = {"kernel": "tv-exponential", "bandwidth": truth["median_TV"]}
    result = KernelTest(null="block", block_size=2, **settings).evaluate(view)
    assert result.statistic == pytest.approx(truth["z_ul"], abs=1e-6)
    assert result.pvalue == pytest.approx(stats.norm.sf(truth["z_ul"]), abs=1e-6)
    assert pvalue_bound_unbiased(truth["SKCEuq"], 10_000) == pytest.approx(
        math.exp(-5000 * (truth["SKCEuq"] / 2) ** 2 / 2), rel=1e-14
    )
    if net == "densenet121":
        # As published, with a standard error whose variance is divided by the number of blocks.
        assert stats.norm.sf(result.statistic * math.sqrt(5000 / 4999)) == pytest.approx(0.8392336627764554, abs=1e-6)
        assert pvalue_bound_unbiased(truth["SKCEuq"], 10_000) == pytest.approx(0.9999894144452068, rel=1e-12)


@pytest.mark.parametrize("joint", [True, False])
def test_a_drawn_set_of_rows_by_its_definition(joint: bool) -> None:
    # n⁻² [n/(n−1) Σ_{a≠b} h(row a, row b) − 2 Σ_a Σ_j h(row a, j)] over the drawn rows a, b, pair by pair.
    rng = np.random.default_rng(0)
    n = 12
    P = rng.dirichlet([1, 1], n)
    y = np.eye(2)[rng.integers(0, 2, n)]
    view = View(P, y) if joint else View(P[:, 1], y[:, 1])
    h = np.exp(-np.sqrt(((P[:, None] - P) ** 2).sum(axis=2)) / 0.4) * ((y - P) @ (y - P).T)
    rows = rng.integers(0, n, (3, n))
    a = n / (n - 1)
    expected = []
    for drawn in rows:
        square = h[np.ix_(drawn, drawn)]
        expected.append((a * (square.sum() - np.trace(square)) - 2 * h[drawn].sum()) / n**2)
    counts = np.stack([np.bincount(drawn, minlength=n) for drawn in rows])
    statistics = bootstrap_statistics(KernelTest(bandwidth=0.4).cell_statistic(view), counts)
    np.testing.assert_allclose(statistics, expected, rtol=1e-10)
    u, v = (h.sum() - np.trace(h)) / (n * (n - 1)), h.sum() / n**2
    assert centered_statistic(KernelTest(bandwidth=0.4).cell_statistic(view)) == pytest.approx(a * u - v, rel=1e-11)


@pytest.mark.slow
def test_size_under_the_null() -> None:
    # Rejections at 5 % over 200 data sets are Binomial(200, .05) for `redraw`: at most 21 in 99.9 %.
    assert stats.binom.ppf(0.999, 200, 0.05) == 21
    rejected = sum(to.test(calibrated(40, seed), "skce", resamples=99).pvalue <= 0.05 for seed in range(200))
    assert 1 <= rejected <= 21


@pytest.mark.slow
def test_the_bootstrap_and_blocks_keep_their_level_with_many_rows() -> None:
    # Rejections at 5 % over 100 data sets are about Binomial(100, .05): at most 13 in 99.9 %.
    for settings in ({"null": "bootstrap", "resamples": 99}, {"null": "block", "block_size": 5}):
        rejected = sum(to.test(calibrated(150, seed), "skce", **settings).pvalue <= 0.05 for seed in range(100))
        assert rejected <= 13


def test_a_shift_of_all_probabilities_is_seen() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 300)
    moved = P * [2.0, 1.0, 1.0] / (P * [2.0, 1.0, 1.0]).sum(axis=1, keepdims=True)
    y = (moved.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    verdict = to.test(to.Predictions(y, P), "skce")
    assert verdict.pvalue == verdict.min_pvalue == 0.001
    assert verdict.lens == "canonical"
    # Residuals are about moved − P, whose mean length the effect is.
    length = np.sqrt(((moved - P).mean(axis=0) ** 2).sum())
    assert verdict.effect == pytest.approx(length, rel=0.4)


def test_rare_outcomes_are_noted_where_the_asymptotic_nulls_fail() -> None:
    rng = np.random.default_rng(0)
    rare = to.Predictions((np.arange(30) == 3).astype(int), rng.beta(1, 19, 30))
    for null in ("bootstrap", "block"):
        verdict = to.test(rare, "skce", null=null, block_size=2 if null == "block" else None, resamples=19)
        assert any(note.code == "TN212" and "rare" in note.text for note in verdict.notes), null
    assert "TN212" not in codes(to.test(rare, "skce", resamples=19))
    many = calibrated(200, 0)
    assert "TN212" not in codes(to.test(many, "skce", null="bootstrap", resamples=19))
    ten_blocks = to.test(many, "skce", null="block", block_size=20)
    assert any("10 blocks" in note.text for note in ten_blocks.notes)
    assert "TN119" in codes(ten_blocks)


def test_blocks_without_a_spread_have_no_z() -> None:
    one = to.test(calibrated(10, 0), "skce", null="block", block_size=10)
    assert math.isnan(one.pvalue)
    assert "TN221" in codes(one)
    alike = to.test(to.Predictions([1] * 40, np.full(40, 0.5)), "skce", null="block", block_size=2)
    assert math.isnan(alike.statistic)
    assert alike.to_dict()["pvalue"] is None


def test_one_row_has_no_pair() -> None:
    for null in KernelTest.null_distributions:
        verdict = to.test(to.Predictions([1], [[0.2, 0.5, 0.3]]), "skce", null=null, resamples=19)
        assert math.isnan(verdict.pvalue)
        assert "TN118" in codes(verdict)


def test_the_settings_used_are_reported() -> None:
    preds = calibrated(60, 1)
    redraw = to.test(preds, "skce", resamples=19, kernel="gaussian", bandwidth=0.3)
    assert (
        redraw.settings.items()
        >= {
            "null": "redraw",
            "redraw": "labels",
            "resamples": 19,
            "form": "unbiased",
            "kernel": "gaussian",
            "bandwidth": 0.3,
        }.items()
    )
    boot = to.test(preds, "skce", null="bootstrap", resamples=19)
    assert (boot.settings["resamples"], boot.min_pvalue) == (19, 0.05)
    assert set(boot.parts["skce"]) == {"unbiased", "biased"}
    block = to.test(preds, "skce", null="block", block_size=6)
    assert (block.settings["block_size"], block.min_pvalue) == (6, None)
    assert "redraw" not in block.settings
    free = to.test(preds, "skce", null="distribution-free")
    assert "TN222" in codes(free)
    assert "bound" in free.null


def test_many_rows_are_compared_within_blocks() -> None:
    preds = calibrated(5200, 2)
    verdict = to.test(preds, "skce", resamples=19)
    assert verdict.settings["form"] == "block"
    assert "TN119" in codes(verdict)
    with refused("TO205", "5,200 rows", fix="redraw"):
        to.test(preds, "skce", null="bootstrap")


def test_meaningless_settings_are_refused() -> None:
    with refused("TO203", "'asymptotic'"):
        KernelTest(null="asymptotic")
    with refused("TO203", "'biasd'", fix="biased"):
        KernelTest(form="biasd")
    for null, form in (("bootstrap", "biased"), ("block", "unbiased")):
        with refused("TO205", repr(form)):
            KernelTest(null=null, form=form)
    with refused("TO205", "function", fix="redraw"):
        KernelTest(null="distribution-free", kernel=lambda P, Q: P @ Q.T)
    with refused("TO205", "redraw='both'"):
        KernelTest(null="block", redraw="both")
    preds = to.Predictions([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], weight=[1, 2, 1, 1])
    with refused("TO205", "weights", fix="redraw"):
        to.test(preds, "skce", null="distribution-free")
    grouped = to.Predictions([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4], cluster=[0, 0, 1, 1])
    with refused("TO205", "cluster= with null='block'"):
        to.test(grouped, "skce", null="block")
    with refused("TO403"):
        to.test(to.tally(preds), "skce")


def test_clusters_votes_and_families_are_tested_by_draws() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 90)
    y = (P.cumsum(axis=1) < rng.random((90, 1))).sum(axis=1)
    grouped = to.test(to.Predictions(y, P, cluster=np.arange(90) // 3), "skce", resamples=49)
    assert 0 < grouped.pvalue <= 1
    votes = np.array([rng.multinomial(5, p) for p in P])
    assert "TN202" in codes(to.test(to.Predictions(votes, P), "skce", resamples=19))
    family = to.test(to.Predictions(y, P), "skce", lens=["canonical", "confidence"], resamples=49)
    assert list(family.parts) == ["canonical", "confidence"]
    both = to.test(to.Predictions(y, P), "skce", redraw="both", resamples=19)
    assert both.settings["redraw"] == "both"


def test_the_draws_of_a_verdict_are_those_of_the_statistic() -> None:
    # Redrawn here label by label: hits counted among the same 49 draws.
    preds = calibrated(60, 3)
    verdict = to.test(preds, "skce", resamples=49, rng=5)
    (view,) = (one_hot(preds.P, preds.y),)
    from trueodds.core.rng import stream_key

    labels = draw_labels_by_row(preds.P, stream_key(np.random.default_rng(5)), 0, 49)
    test = KernelTest()
    draws = [test.evaluate(one_hot(preds.P, column)).statistic for column in labels.T]
    hits = sum(value >= verdict.statistic * (1 - 1e-10) for value in draws)
    assert verdict.pvalue == (1 + hits) / 50
    assert verdict.statistic == test.evaluate(view).statistic
