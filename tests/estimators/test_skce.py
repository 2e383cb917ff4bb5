"""Is the SKCE the published number in every form, and do its draws mean what the rows mean?"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.data.refused import refused
from trueodds import Predictions
from trueodds.core.typing import Array
from trueodds.estimators.skce import SquaredKernelError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

FORMS = ("unbiased", "biased", "block")


@cache
def anchors() -> Any:
    return reference.golden("anchors/golden.json")


def one_hot(P: Array, y: Array) -> View:
    return View(P, np.eye(P.shape[1])[np.asarray(y, dtype=int)], classes=P.shape[1])


def skce(form: str = "unbiased", **settings: Any) -> SquaredKernelError:
    return SquaredKernelError(form=form, **({"bandwidth": 1.0} | settings))


def rows(n: int, k: int = 3, seed: int = 0) -> View:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return one_hot(P, rng.integers(0, k, n))


def scores(n: int, seed: int = 0) -> View:
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    return View(p, (rng.random(n) < 0.5).astype(float))


@pytest.mark.parametrize(
    ("labels", "unbiased", "biased"),
    [
        # Sure and right in row 0 alone: one residual is 0, and so are all products; V = 2 · 1 / 4
        ((0, 0), 0.0, 0.5),
        # Both wrong: residuals (−1, 1) and (1, −1), product −2, k = exp(−2/2); V = (2 + 2 − 4/e) / 4
        ((1, 0), -2 / math.e, 1 - 1 / math.e),
        ((0, 1), 0.0, 0.0),
    ],
)
def test_by_hand(labels: tuple[int, int], unbiased: float, biased: float) -> None:
    # Also the literals of CalibrationErrors.jl's own tests.
    view = one_hot(np.eye(2), np.array(labels))
    assert skce(kernel="gaussian").value(view) == pytest.approx(unbiased, rel=1e-14, abs=1e-15)
    assert skce("biased", kernel="gaussian").value(view) == pytest.approx(biased, rel=1e-14, abs=1e-15)


@pytest.mark.reference
def test_reference_numbers() -> None:
    truth, table = reference.estimators(), reference.frame("estimators/b_multi1000.csv")
    view = one_hot(reference.columns(table)[:200], table["y"][:200])
    for estimator, key in (
        (skce(), "b200.skce_uq_exp_l2_nu1"),
        (skce("biased"), "b200.skce_b_exp_l2_nu1"),
        (skce("block", block_size=2), "b200.skce_ul_exp_l2_nu1"),
        (skce("block", block_size=20), "b200.skce_block20"),
    ):
        assert estimator.value(view) == pytest.approx(truth[key]["value"], rel=1e-10), key


@pytest.mark.reference
@pytest.mark.parametrize("name", ["g3_200", "g3cal_200"])
@pytest.mark.parametrize(
    ("key", "kernel", "bandwidth"),
    [
        ("exp_tv", "tv-exponential", 1.0),
        ("exp_euclid", "exponential", 1.0),
        ("sqexp_euclid", "gaussian", 1.0),
        ("exp_tv_median", "tv-exponential", "median"),
    ],
)
def test_every_kernel_and_form_of_the_anchors(name: str, key: str, kernel: str, bandwidth: Any) -> None:
    table = reference.frame(f"anchors/synthetic/{name}.csv")
    view, truth = one_hot(reference.columns(table), table["y"]), anchors()["kernel_and_ece"][name]["skce"][key]
    settings = {"kernel": kernel, "bandwidth": bandwidth}
    assert skce(**settings).value(view) == pytest.approx(truth["unbiased"], rel=1e-10)
    assert skce("biased", **settings).value(view) == pytest.approx(truth["biased"], rel=1e-10)
    for size, block in truth["block"].items():
        value = skce("block", block_size=int(size), **settings).value(view)
        assert value == pytest.approx(block["estimate"], rel=1e-10), size


@pytest.mark.reference
@pytest.mark.parametrize(
    ("key", "kernel"), [("exp_tv", "tv-exponential"), ("exp_euclid", "exponential"), ("sqexp", "gaussian")]
)
def test_table_1_whose_error_only_whole_vectors_show(key: str, kernel: str) -> None:
    # Vaicenavicius et al. (2019), table 1: six vectors of equal probability with their calibration function.
    table = anchors()["analytic_and_literal"]["table1"]
    view = View(np.array(table["g"]), np.array(table["r"]))
    assert skce("biased", kernel=kernel).value(view) == pytest.approx(table["skce"][key], rel=1e-10)
    named = skce("biased", kernel=kernel)
    for c in range(3):
        # A score of .1, .3 or .6 came as often as said; its squared residuals are sums of three roundings.
        one = View(view.p[:, c], view.y[:, c]).pool(np.rint(view.p[:, c] * 10).astype(int), 7)
        assert named.value(View(one.p, one.y, one.w)) == pytest.approx(0.0, abs=1e-30)


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("net", ["densenet121", "resnet18", "inception_v3", "vgg16_bn"])
def test_four_real_nets(net: str) -> None:
    # Widmann et al. (2019): published results of 10,000 images. The float32 arrays differ from the decimal text by up
    # to 3e-8 in each probability near 1, at random: by 3e-8 · 2 · .15 / √10,000 = 1e-10 in a mean over as many rows.
    truth, arrays = anchors()["cifar10"][net], reference.data("widmann_cifar10_4nets.npz")
    view = one_hot(arrays[f"probs_{net}"], arrays["labels"])
    settings = {"kernel": "tv-exponential", "bandwidth": truth["median_TV"]}
    pairs = skce(**settings).cell_statistic(view)
    assert pairs.value() == pytest.approx(truth["SKCEuq"], abs=1e-10)
    assert pairs.biased() == pytest.approx(truth["SKCEb"], abs=1e-10)
    assert skce("block", block_size=2, **settings).value(view) == pytest.approx(truth["SKCEul"], abs=1e-10)


@pytest.mark.reference
def test_the_scalar_form_is_the_vector_form_at_a_wider_bandwidth() -> None:
    # pycalibration's first example: k = exp(−|p − q|), doubled for booleans; as vectors that is √2 |p − q| / √2.
    truth = anchors()["kernel_and_ece"]["g3_200"]["pycalibration_readme"]
    rng = np.random.default_rng(1234)
    view = View(rng.random(100), rng.choice([True, False], 100))
    assert skce(bandwidth=math.sqrt(2)).value(view) == pytest.approx(truth["binary_numpy"]["expected"], rel=1e-10)
    assert skce(kernel="tv-exponential").value(view) == pytest.approx(truth["binary_numpy"]["expected"], rel=1e-10)
    rng = np.random.default_rng(1234)
    view = one_hot(rng.dirichlet((3, 2, 5), 100), rng.integers(1, 4, 100) - 1)
    assert skce().value(view) == pytest.approx(truth["dirichlet_matrix"]["expected"], rel=1e-10)


def test_nothing_remains_of_a_calibrated_model_on_average() -> None:
    # Over all 2⁴ outcomes of four rows, each with its probability, the mean is 0, and that of `biased` is what each
    # row is with itself: Σ 2 p (1 − p) / n².
    p = np.array([0.1, 0.4, 0.4, 0.8])
    mean = dict.fromkeys(FORMS, 0.0)
    for y in itertools.product([0, 1], repeat=4):
        chance = np.prod(np.where(y, p, 1 - p))
        for form in FORMS:
            mean[form] += chance * skce(form, block_size=2).value(View(p, np.array(y)))
    assert mean["unbiased"] == pytest.approx(0.0, abs=1e-16)
    assert mean["block"] == pytest.approx(0.0, abs=1e-16)
    assert mean["biased"] == pytest.approx(2 * (p * (1 - p)).sum() / 16, rel=1e-13)


@pytest.mark.parametrize("shape", ["exponential", "tv-exponential"])
@pytest.mark.parametrize("form", FORMS)
def test_without_a_matrix_the_number_is_that_of_all_pairs(shape: str, form: str) -> None:
    def of_vectors(A: Array, B: Array) -> Array:
        gap = np.abs(A[:, None, :] - B[None]).sum(axis=2) / 2
        return np.exp(-gap * (np.sqrt(2) if shape == "exponential" else 1) / 0.3)

    view = scores(101)
    view = View(view.p, view.y, np.random.default_rng(1).random(101))
    fast = skce(form, kernel=shape, bandwidth=0.3, block_size=7)
    slow = skce(form, kernel=of_vectors, block_size=7)
    assert fast.value(view) == pytest.approx(slow.value(view), rel=1e-12)
    two = View(np.stack([1 - view.p, view.p], axis=1), np.stack([1 - view.y, view.y], axis=1), view.w)
    assert fast.value(two) == pytest.approx(fast.value(view), rel=1e-12)
    assert "bandwidth" not in slow.settings_used(view)


def test_long_blocks_cross_strips_and_short_ones_share_them() -> None:
    view = rows(700)
    h = np.exp(-np.sqrt(((view.p[:, None] - view.p[None]) ** 2).sum(axis=2)))
    h *= (view.y - view.p) @ (view.y - view.p).T
    for size in (2, 3, 37, 300, 699, 700, 5000):
        edges = [*range(0, 699, size), 700]  # a last row alone joins the block before
        above = sum(h[a:b, a:b].sum() - np.trace(h[a:b, a:b]) for a, b in itertools.pairwise(edges))
        below = sum((b - a) * (b - a - 1) for a, b in itertools.pairwise(edges))
        pairs = skce("block", block_size=size).cell_statistic(view)
        assert pairs.value() == pytest.approx(above / below, rel=1e-11), size
        assert pairs.quadratic_forms.pair_sums_by_block().sum() == pytest.approx(above, rel=1e-11), size


# Draws


@pytest.mark.parametrize("make", [rows, scores])
@pytest.mark.parametrize("form", FORMS)
def test_a_redraw_is_the_value_with_other_labels(make: Any, form: str) -> None:
    view, rng = make(60), np.random.default_rng(2)
    view = View(view.p, view.y, rng.integers(0, 3, 60).astype(float))
    estimator = skce(form, block_size=9)
    linear = estimator.cell_statistic(view)
    kernel_rows = linear.rows
    y = np.stack([rng.permutation(view.y) for _ in range(8)])
    w = view.w if view.y.ndim == 1 else view.w[:, None]
    values = linear.statistic(view.w[None, kernel_rows], (w * view.p)[None, kernel_rows], (w * y)[:, kernel_rows])
    assert np.allclose(values, [estimator.value(view.with_y(one)) for one in y], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("make", [rows, scores])
@pytest.mark.parametrize("form", ["unbiased", "biased"])
def test_a_resample_is_the_value_of_the_rows_that_were_drawn(make: Any, form: str) -> None:
    view, rng = make(40), np.random.default_rng(3)
    view = View(view.p, view.y, rng.random(40) + 0.2)
    estimator = skce(form)
    drawn = rng.integers(0, 40, (5, 40))
    expected = [estimator.value(view.take(r)) for r in drawn]
    linear = estimator.cell_statistic(view)
    w = np.stack([np.bincount(r, minlength=40) for r in drawn]) * view.w
    wide = w if view.y.ndim == 1 else w[..., None]
    assert np.allclose(linear.statistic(w, wide * view.p, wide * view.y), expected, rtol=1e-11)
    # One draw alone, and the estimator's own resamples: the same rows, drawn in the same order.
    assert float(linear.statistic(w[:1], (wide * view.p)[:1], (wide * view.y)[:1])[0]) == pytest.approx(expected[0])
    own = estimator.resample_units((view,), 5, np.random.default_rng(4))
    assert own is not None
    drawn_rows = np.random.default_rng(4).integers(0, 40, (5, 40))
    assert np.allclose(own[0][0], [estimator.value(view.take(r)) for r in drawn_rows], rtol=1e-11)


def test_resamples_scatter_around_the_plug_in() -> None:
    view = rows(50, seed=5)
    estimator = skce()
    own = estimator.resample_units((view,), 4000, np.random.default_rng(0))
    assert own is not None
    draws = own[0][0]
    # E T* = V exactly; the mean of 4,000 draws lies within four of its standard errors.
    assert abs(draws.mean() - estimator.plug_in_value(view)) < 4 * draws.std() / math.sqrt(4000)
    assert estimator.plug_in_value(view) == pytest.approx(skce("biased").value(view), rel=1e-14)


def test_whole_blocks_are_drawn() -> None:
    view = rows(100, seed=6)
    estimator = skce("block", block_size=10)
    own = estimator.resample_units((view,), 4000, np.random.default_rng(0))
    assert own is not None
    assert own[1] == "blocks"
    block_values = estimator.cell_statistic(view).quadratic_forms.pair_sums_by_block() / 90
    assert abs(own[0].mean() - block_values.mean()) < 4 * own[0].std() / math.sqrt(4000)
    # A standard deviation from 4,000 draws is right to 1/√8000 = 1.1 %; four of those
    assert own[0].std() == pytest.approx(block_values.std() / math.sqrt(10), rel=0.045)
    assert estimator.plug_in_value(view) == estimator.value(view)


# Weights, ties, edges


def test_weights_of_two_are_two_rows_where_each_row_meets_itself() -> None:
    view = rows(30)
    w = np.random.default_rng(0).integers(0, 3, 30)
    twice = View(np.repeat(view.p, w, axis=0), np.repeat(view.y, w, axis=0))
    for bandwidth in (1.0, "median"):
        biased = skce("biased", bandwidth=bandwidth)
        assert biased.value(View(view.p, view.y, w)) == pytest.approx(biased.value(twice), rel=1e-12)


def test_the_unbiased_form_reads_weights_as_importance() -> None:
    # Two rows of weights 1 and 3: Σ_{i≠j} w w h / ((Σw)² − Σw²) = 6 h / 6, whatever the weights
    p, y = np.array([0.9, 0.9]), np.array([1.0, 0.0])
    assert skce().value(View(p, y, [1.0, 3.0])) == pytest.approx(2 * 0.1 * -0.9, rel=1e-13)


def test_one_row_has_no_pairs() -> None:
    for form in ("auto", "unbiased", "block"):
        estimate = skce(form)(View([[0.2, 0.8]], [[0.0, 1.0]]))
        assert math.isnan(estimate.value)
        assert [note.code for note in estimate.notes] == ["TN118", "TN155"]
        assert estimate.to_dict()["value"] is None
    assert skce("biased").value(View([0.7], [1.0])) == pytest.approx(2 * 0.3**2, rel=1e-13)
    assert not skce("biased")(View([0.7], [1.0])).notes
    zero_weighted = to.measure(Predictions([1, 0], [0.7, 0.2], weight=[1, 0]), "skce")
    assert math.isnan(zero_weighted.value)
    assert zero_weighted.interval is None


def test_auto_compares_all_pairs_while_it_can() -> None:
    auto = SquaredKernelError(bandwidth=1.0)
    small, many, line = rows(5000), rows(5001), scores(5001)
    assert auto.settings_used(small)["form"] == "unbiased"
    assert auto.settings_used(many) == {"form": "block", "kernel": "exponential", "bandwidth": 1.0, "block_size": 50}
    assert [note.code for note in auto.notes(many)] == ["TN119"]
    assert auto.settings_used(line)["form"] == "unbiased"  # no matrix is needed there
    assert not auto.notes(line)
    assert auto.value(many) == skce("block", block_size=50).value(many)
    assert SquaredKernelError(kernel="gaussian").settings_used(line)["form"] == "block"


def test_meaningless_settings_are_refused() -> None:
    with refused("TO203", "'biasd'", fix="biased"):
        SquaredKernelError(form="biasd")
    for size in (1, 2.5, True, "20"):
        with refused("TO203", repr(size), fix="Leave it out"):
            SquaredKernelError(block_size=size)  # type: ignore[arg-type]
    with refused("TO205", fix="rows"):
        skce().value(scores(40).pool(np.zeros(40, dtype=int), 1))


# The whole answer


def test_an_unbiased_value_may_be_negative_and_is_shown_signed() -> None:
    # A negative value whose square or root were taken would look like an error.
    # Twenty residuals of ±.5 that cancel: 2 · (0² − 20 · .25) / (20 · 19)
    estimate = to.measure(Predictions([0, 1] * 10, [0.5] * 20), "skce")
    assert estimate.value == pytest.approx(-10 / 380)
    assert estimate.noise_floor == 0.0
    assert estimate.debiased is None
    assert estimate.interval is None or estimate.interval.low <= estimate.value <= estimate.interval.high
    miscalibrated = to.measure(Predictions([1] * 40, np.full(40, 0.5)), "skce", lens="canonical")
    assert miscalibrated.value == pytest.approx(0.5)  # 2 · .5²


def test_the_noise_floor_of_the_biased_form_is_what_each_row_is_with_itself() -> None:
    view = scores(200)
    preds = Predictions(view.y.astype(int), view.p)
    estimate = to.measure(preds, "skce", form="biased", bandwidth=0.3, resamples=200)
    expected = 2 * (view.p * (1 - view.p)).sum() / 200**2
    # The null statistic is a weighted sum of χ²₁: its standard deviation is at most √2 times its mean.
    assert estimate.noise_floor == pytest.approx(expected, abs=4 * math.sqrt(2) * expected / math.sqrt(999))
    assert estimate.interval is not None
    assert 0 <= estimate.interval.low <= estimate.value <= estimate.interval.high
    if estimate.value**0.5 < 2 * estimate.noise_floor**0.5:
        assert estimate.debiased == pytest.approx(max(0.0, estimate.value - estimate.noise_floor), rel=1e-12)


@pytest.mark.slow
def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    # True SKCE of a model that says .3 or .7 where .4 or .6 is true, k = 1 within and exp(−.4 √2) between:
    # residuals ±.1, so 2 · .01 · (½ − ½ exp(−.4 √2)). Misses of 95 % are Binomial(60, .05): at most 9 in 99.9 %.
    truth = 0.01 * (1 - math.exp(-0.4 * math.sqrt(2)))
    rng = np.random.default_rng(0)
    misses = 0
    for _ in range(60):
        p = rng.choice([0.3, 0.7], 300)
        y = (rng.random(300) < np.where(p < 0.5, 0.4, 0.6)).astype(int)
        interval = to.measure(Predictions(y, p), "skce", bandwidth=1.0, resamples=300).interval
        assert interval is not None
        misses += not interval.low <= truth <= interval.high
    assert misses <= 9


def test_clusters_are_resampled_as_units_with_a_noise_floor() -> None:
    view = scores(60)
    preds = Predictions(view.y.astype(int), view.p, cluster=np.arange(60) // 3)
    estimate = to.measure(preds, "skce", resamples=100)
    assert estimate.settings["resample"] == "clusters"
    assert estimate.noise_floor is not None
    assert estimate.noise_floor != 0.0  # pairs within a cluster do not cancel


def test_every_lens_gives_a_number_with_its_interval() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 80)
    preds = Predictions(rng.integers(0, 3, 80), P)
    for lens in ("canonical", "confidence", "classwise", "top-2", "groups:[[0,1],[2]]"):
        estimate = to.measure(preds, "skce", lens=lens, resamples=50)
        assert math.isfinite(estimate.value)
        assert estimate.interval is not None
    (view,) = as_lens("canonical").views(preds)
    assert SquaredKernelError()(view).lens == "canonical"
