"""Intervals: reference values, worked values, and coverage."""

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from tests import reference
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.bootstrap import bootstrap
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals import residual_norm, squared_error
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.intervals.percentile import bca_interval, central_quantiles, jackknife
from trueodds.resampling.null_distribution import null_draws


def binary500():
    rows = reference.frame("estimators/c_binary500.csv")
    return Predictions(rows["y"].astype(int), rows["p"])


def answered(preds, question, interval_spec, rng):
    """The estimate alone; the noise floor is not what these tests look at."""
    return estimate_all(preds, [question], interval_spec, rng, lambda _every: [np.zeros((len(question.views), 1))])[0]


def make_estimand(preds, name="ece", lens="positive", **settings):
    return Estimand.from_predictions(ESTIMATORS.make(name, settings), as_lens(lens), preds)


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_row_bootstrap_equals_the_reference(method):
    # golden c.bootstrap95.ece_ew10: B=400, indices default_rng(0).integers(0, n, (B, n)); scipy agrees to 1e-12
    preds = binary500()
    interval_spec = IntervalSpec(method, 0.95, 400)
    estimate = answered(preds, make_estimand(preds, bins=10), interval_spec, np.random.default_rng(0))
    known = reference.estimators()["c.bootstrap95.ece_ew10"]["value"][method]
    np.testing.assert_allclose([estimate.interval.low, estimate.interval.high], known, rtol=1e-10)
    assert estimate.interval.method == method


@pytest.mark.parametrize(("bins", "key"), [(15, "c.sun_ci90_l2.m15"), (50, "c.sun_ci90_l2.m50")])
def test_the_interval_for_l2_equals_the_authors(bins, key):
    (view,) = as_lens("positive").views(binary500())
    cells = Uniform(bins).fit(view)
    binned = view.pool(cells.index(view.partition_values), cells.size)
    t, variance = squared_error.debiased_squared_error(binned)
    known = reference.estimators()
    assert t == pytest.approx(known[f"c.sun_T_mn.m{bins}"]["value"], rel=1e-10)
    assert variance == pytest.approx(known[f"c.sun_sigma1sq.m{bins}"]["value"], rel=1e-10)
    interval = squared_error.sun_interval(binned, 0.90)
    np.testing.assert_allclose([interval.low, interval.high], known[key]["value"], rtol=1e-10)


def test_the_squared_error_by_hand():
    # one bin, p = .5 thrice, y = 1 1 0: U = .5 .5 -.5, (ΣU)² - ΣU² = .25 - .75 = -.5, over n(n-1) = 6: -1/12
    view = View([0.5, 0.5, 0.5], [1, 1, 0]).pool(np.zeros(3, dtype=int), 1)
    assert squared_error.debiased_squared_error(view)[0] == pytest.approx(-1 / 12, abs=1e-15)


def test_a_bin_of_one_row_says_nothing_about_the_squared_error():
    view = View([0.1, 0.5, 0.5], [1, 1, 0]).pool(np.array([0, 1, 1]), 2)
    # bin 1: U = .5 -.5, (0 - .5)/2 = -.25, with weight 2/3
    assert squared_error.debiased_squared_error(view)[0] == pytest.approx(-1 / 6, abs=1e-15)


def test_the_debiased_form_by_hand():
    # T = 1, V = 3, resamples scatter around V: quantiles 2.5 % and 97.5 % of 2..4 are 2.05 and 3.95
    interval = squared_error.debiased_interval(1.0, 3.0, np.linspace(2, 4, 101), 0.95)
    assert (interval.low, interval.high) == pytest.approx((1 - 0.95, 1 + 0.95))
    assert (
        squared_error.root_interval(squared_error.debiased_interval(0.0, 3.0, np.linspace(2, 4, 101), 0.95)).low == 0.0
    )


def test_the_residual_norm_by_hand():
    # value .5, spread 0..1 with 97.5 % quantile .975: the low end is 0; draws ±1 around .5 have sd √(100/99)
    z, draws = 1.959963984540054, np.tile([-0.5, 1.5], 50)
    interval = residual_norm.residual_norm_interval(
        0.5, draws, np.linspace(0, 1, 101), np.zeros(9), 0.95, 50, 1.0, null_quantile=0.0
    )
    assert interval.low == 0.0
    # 4 n sd² is above 1, so outcomes vary as much as they can, and Wilson's shift is 0
    assert interval.high == pytest.approx(0.5 + z * np.sqrt(100 / 99))
    rare = residual_norm.residual_norm_interval(
        0.5, np.full(9, 0.5), np.zeros(9), np.zeros(9), 0.95, 50, 1.0, null_quantile=0.0
    )
    assert rare.high == pytest.approx(0.5 + z**2 / 50)
    # no resample varies, but calibrated draws reach .3: the low end is .5 − .3, and the clear branch .5 − 0 − 0
    assert residual_norm.residual_norm_interval(
        0.5, np.full(9, 0.5), np.zeros(9), np.full(9, 0.3), 0.95, 50, 1.0, null_quantile=0.3
    ).low == pytest.approx(0.2)
    assert residual_norm.residual_norm_interval(
        0.5, np.full(9, 0.5), np.zeros(9), np.full(9, 0.1), 0.95, 50, 1.0, null_quantile=0.1
    ).low == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 50, 100])
@pytest.mark.parametrize(
    ("lens", "settings"),
    [("confidence", {}), ("classwise", {}), ("canonical", {"partition": "simplex-grid", "bins": 5})],
)
def test_sparse_bins_do_not_push_the_interval_off_the_truth(n, lens, settings):
    # calibrated models, 60 data sets: the lower end may exceed 0 in 5 % of them, at most 10 with 99.9 %.
    # (A bin of one row shows a bootstrap no noise; reading the noise from resamples alone missed in up to 100 %.)
    rng = np.random.default_rng(n)
    missed = 0
    for _ in range(60):
        P = rng.dirichlet(np.ones(4), n)
        y = (rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, 3)
        question = Estimand.from_predictions(
            ESTIMATORS.make("ece", settings), as_lens(lens), preds := Predictions(y, P)
        )
        null = null_draws(preds, [question], 99, rng)
        # The interval of the mean gap needs more resamples than the standard deviation: its limits are percentiles.
        (estimate,) = estimate_all(preds, [question], IntervalSpec(resamples=1000), rng, lambda _every, null=null: null)
        missed += estimate.interval is not None and estimate.interval.low > 0
    assert missed <= 10


def test_rare_outcomes_that_no_resample_shows_still_widen_the_interval():
    # 10 rows at .9, all right: by Clopper and Pearson the true rate is at least .025^(1/10) = .6915, an error of .2085,
    # though no resample varies
    preds = Predictions([1] * 10, np.linspace(0.89, 0.91, 10))
    question = make_estimand(preds)
    null = null_draws(preds, [question], 199, np.random.default_rng(0))
    (estimate,) = estimate_all(
        preds, [question], IntervalSpec(resamples=100), np.random.default_rng(0), lambda _every: null
    )
    assert 0.2085 < estimate.interval.high < 0.3
    assert estimate.interval.low == 0.0


@pytest.mark.parametrize(("method", "resample"), [("sun", "auto"), ("debiased", "auto"), ("auto", "cells")])
def test_methods_that_take_rows_as_independent_refuse_clusters(method, resample):
    rng = np.random.default_rng(0)
    preds = Predictions(rng.integers(0, 2, 60), rng.random(60), cluster=np.arange(60) // 3)
    name = "ece" if resample == "cells" else "rmsce"
    with pytest.raises(InputError, match="TO205"):
        answered(preds, make_estimand(preds, name), IntervalSpec(method, resample=resample, resamples=20), rng)


def test_classes_are_not_resampled_apart():
    preds = Predictions([0, 1, 2] * 20, np.random.default_rng(0).dirichlet([1, 1, 1], 60))
    with pytest.raises(InputError, match="TO205"):
        answered(
            preds, make_estimand(preds, "ece", "classwise"), IntervalSpec(resample="cells"), np.random.default_rng(0)
        )


def test_the_jackknife_by_bins_equals_leaving_rows_out():
    preds = binary500()[np.arange(60)]
    for estimand in (
        make_estimand(preds),
        make_estimand(preds, "mce"),
        make_estimand(preds, "brier"),
        make_estimand(preds, "rmsce", partition="equal-mass"),
    ):
        error = estimand.estimator
        if estimand.cell_statistics is None:
            continue
        by_hand = [
            Estimand(error, estimand.lens, (estimand.views[0].take(np.delete(np.arange(60), i)),)) for i in range(60)
        ]
        if error.name == "brier":
            expected = [one.values[0] for one in by_hand]
        else:
            expected = []
            (one,) = estimand.cell_statistics
            for i in range(60):
                rows = np.delete(np.arange(60), i)
                view = estimand.views[0].take(rows)
                w, wp, wy = (
                    np.bincount(one.index[rows], x, one.size)[None] for x in (view.w, view.w * view.p, view.w * view.y)
                )
                expected.append(one.statistic(w, wp, wy)[0])
        np.testing.assert_allclose(jackknife(preds, estimand)[0], expected, rtol=1e-9)


def test_a_joint_view_has_a_jackknife_too():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 40)
    preds = Predictions(rng.integers(0, 3, 40), P)
    estimand = make_estimand(preds, lens="canonical", partition="simplex-grid", bins=2)
    (one,) = estimand.cell_statistics
    view = estimand.views[0]
    for i in (0, 17, 39):
        rows = np.delete(np.arange(40), i)
        sums = [np.zeros((1, one.size, 3)) for _ in range(2)]
        w = np.bincount(one.index[rows], minlength=one.size)[None].astype(float)
        np.add.at(sums[0][0], one.index[rows], view.p[rows])
        np.add.at(sums[1][0], one.index[rows], view.y[rows])
        assert jackknife(preds, estimand)[0, i] == pytest.approx(one.statistic(w, *sums)[0], rel=1e-9)


def test_resampling_cells_gives_the_law_of_resampling_rows():
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-rng.normal(0, 1.3, 4000)))
    preds = Predictions((rng.random(4000) < p**1.3).astype(int), p)
    question = make_estimand(preds, bins=10)
    (rows,) = bootstrap(preds, [question], 2000, np.random.default_rng(1), "rows")
    (cells,) = bootstrap(preds, [question], 2000, np.random.default_rng(2), "cells")
    for a, b in ((rows.values[0], cells.values[0]), (rows.centered_norms[0], cells.centered_norms[0])):
        # the standard error of a quantile near the tails is below .07 sd for 2000 draws; two of them, 99.9 %
        for q in (0.025, 0.5, 0.975):
            assert abs(np.quantile(a, q) - np.quantile(b, q)) < 3.3 * np.sqrt(2) * 0.07 * a.std()


def test_clusters_are_drawn_whole():
    # 40 clusters of 25 equal rows: the bootstrap of whole clusters sees 40 independent values, not 1000
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 2, 40), 25)
    preds = Predictions(y, np.full(1000, 0.5))
    clustered = Predictions(y, np.full(1000, 0.5), cluster=np.arange(1000) // 25)
    widths = []
    for data in (preds, clustered):
        (drawn,) = bootstrap(
            data, [make_estimand(data, "brier"), make_estimand(data, bins=1)][1:], 500, np.random.default_rng(1)
        )
        widths.append(drawn.values[0].std())
    assert 3.5 < widths[1] / widths[0] < 7  # √25 = 5 in the limit


def test_auto_means_what_the_coverage_studies_chose():
    preds = binary500()

    def method(*args, **kwargs):
        estimate = answered(
            preds, make_estimand(preds, *args, **kwargs), IntervalSpec(resamples=50), np.random.default_rng(0)
        )
        return estimate.interval and estimate.interval.method

    assert method("ece") == method("ece", "classwise") == method("ace") == method("tace") == "folded-normal"
    assert method("mce") == method("ks") == "residual-norm"
    assert method("corp") == "floor-bounds"
    assert method("rmsce") == "sun"
    assert method("rmsce", bins=100) == "residual-norm"  # five rows a bin: Sun's interval would cover 88 %
    assert method("brier") == method("log_loss") == "bca"
    assert method("ece", distance="kl") is None
    assert method("ece", partition="sweep") is None


def test_an_interval_without_measured_coverage_is_missing_with_a_note():
    preds = binary500()
    estimate = answered(
        preds, make_estimand(preds, distance="kl"), IntervalSpec(resamples=50), np.random.default_rng(0)
    )
    assert "TN201" in [note.code for note in estimate.notes]


@pytest.mark.parametrize("method", ["sun", "debiased"])
def test_intervals_for_the_squared_error_are_refused_elsewhere(method):
    preds = binary500()
    with pytest.raises(InputError, match="TO205"):
        answered(preds, make_estimand(preds, "ece"), IntervalSpec(method), np.random.default_rng(0))


@pytest.mark.parametrize(
    "settings", [{"interval": "bootstrep"}, {"level": 1.5}, {"level": "95"}, {"resamples": 1}, {"resample": "columns"}]
)
def test_settings_of_an_interval_are_checked(settings):
    with pytest.raises(InputError, match="TO203"):
        IntervalSpec(**settings)


@pytest.mark.claim(
    "docs/evidence.md",
    "Intervals of 95 % contain the true value in at least 90 % of data sets.",
    "coverage",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "slope"),
    [
        ("ece", {"bins": 10}, 1.0),
        ("ece", {"bins": 10}, 0.7),
        ("mce", {"bins": 5}, 0.7),
        ("rmsce", {"partition": "equal-mass", "bins": 10}, 0.7),
        ("brier", {}, 0.7),
    ],
)
def test_intervals_cover_the_truth(name, settings, slope):
    # 200 data sets of 400 rows; 95 % intervals promise at least 93 %: below 178 hits has probability < .1 %
    estimator = ESTIMATORS.make(name, settings)
    rng = np.random.default_rng(11)

    def rows(n):
        score = rng.normal(0, 1.3, n)
        return 1 / (1 + np.exp(-score)), 1 / (1 + np.exp(-slope * score))

    p, q = rows(1_000_000)
    truth = float(np.mean(q * (1 - p) ** 2 + (1 - q) * p**2)) if name == "brier" else estimator.value(View(p, q))
    hits = 0
    for _ in range(200):
        p, q = rows(400)
        preds = Predictions((rng.random(400) < q).astype(int), p)
        question = Estimand.from_predictions(estimator, as_lens("positive"), preds)
        estimate = answered(preds, question, IntervalSpec(resamples=200), rng)
        hits += estimate.interval.low <= truth <= estimate.interval.high
    assert hits >= 178


def test_the_noise_floor_interval_by_hand():
    # Null draws 0 … .4: q = quantile(.975) = .39; the square is made on the root:
    # V = .25 is .5, low (.5 − .39)² = .0121.
    null, flat = np.linspace(0, 0.4, 101) ** 2, np.full(9, 0.25)
    interval = residual_norm.noise_floor_interval(0.25, flat, null, 0.95, 50, power=2.0)
    # .5 is 2.5 times the mean root .2, where the blend begins: only q counts. Above: .5 + z²/50, z² = 3.8415.
    assert interval.low == pytest.approx((0.5 - 0.39) ** 2)
    assert interval.high == pytest.approx((0.5 + 3.841458820694124 / 50) ** 2)
    assert interval.method == "noise-floor"


def test_the_lower_end_has_no_step_where_an_error_gets_clear_of_its_noise():
    draws, noise = np.linspace(-0.01, 0.01, 201), np.linspace(0, 0.2, 201)  # mean noise .1, q = .195
    ends = [
        residual_norm.residual_norm_interval(v, v + draws, noise, noise, 0.95, 1000, 1.0, null_quantile=0.195).low
        for v in np.linspace(0.2, 0.4, 2001)
    ]
    # From V − q to V − z sd the end gains at most .19 over .1 of V, so .0001 of V cannot move it by more than .0004.
    assert np.abs(np.diff(ends)).max() < 4e-4
    assert ends[500] == pytest.approx(0.25 - 0.195)  # 2.5 means: the blend begins
    sd = draws.std(ddof=1)
    assert ends[1500] == pytest.approx(0.35 - 1.959963984540054 * sd)  # 3.5 means: it has ended
    worst = residual_norm.residual_norm_interval(
        0.4, 0.4 + draws, noise, noise, 0.95, 1000, 1.0, null_quantile=0.195, smooth=False
    )
    assert worst.low == pytest.approx(0.4 - 0.195)


def test_the_interval_of_pairs_by_hand():
    # Draws 0 … 1 around V = .5: q = .025 and .975. T = .3: low .3 − .475, high .3 + max(.475, .475).
    even = squared_error.pair_mean_interval(0.3, 0.5, np.linspace(0, 1, 1001), 0.95)
    assert (even.low, even.high) == pytest.approx((0.3 - 0.475, 0.3 + 0.475))
    # To the right of V = .2 they reach .775 above and .175 below: the longer margin counts above.
    skewed = squared_error.pair_mean_interval(0.3, 0.2, np.linspace(0, 1, 1001), 0.95)
    assert (skewed.low, skewed.high) == pytest.approx((0.3 - 0.775, 0.3 + 0.775))


@pytest.mark.parametrize("name", ["ece", "ace", "tace", "average_ce", "debiased_l1", "sce"])
def test_the_largest_error_there_is_has_no_end_beyond_it(name: str) -> None:
    estimate = to.measure(to.Predictions([1] * 10 + [0] * 10, [0.0] * 10 + [1.0] * 10), name)
    assert estimate.interval.high == max(estimate.value, 1.0)


@pytest.mark.slow
def test_corp_of_a_calibrated_constant_excludes_0_no_oftener_than_it_may() -> None:
    assert to.measure(to.Predictions([1] * 20, [0.9] * 20), "corp").interval.low == 0  # .12 of all sets are like this
    sets, n = 100, 100
    excluded = 0
    for seed in range(sets):
        y = (np.random.default_rng(seed).random(n) < 0.98).astype(int)
        excluded += to.measure(to.Predictions(y, [0.98] * n), "corp", resamples=200).interval.low > 0
    assert excluded <= binom.ppf(0.999, sets, 0.05)


# Values near the limits of floats


def test_bca_is_the_same_for_values_whose_squares_overflow() -> None:
    rng = np.random.default_rng(0)
    draws, jackknife_values = rng.exponential(size=199), rng.exponential(size=50)
    interval, large = (bca_interval(x, x * draws, x * jackknife_values, 0.9) for x in (1.0, 2.0**1000))
    assert (large.low / 2.0**1000, large.high / 2.0**1000) == pytest.approx((interval.low, interval.high), rel=1e-12)


def test_a_limit_among_infinite_draws_is_infinite() -> None:
    # The interpolation between two infinite draws was NaN. Of 11 draws, 4 are infinite: the 95 % quantile is among
    # them, and the 5 % quantile is half of the way from 0 to 1.
    draws = np.append(np.arange(7.0), [np.inf] * 4)
    assert central_quantiles(draws, 0.9) == pytest.approx((0.5, np.inf))
    assert central_quantiles(-draws, 0.9) == pytest.approx((-np.inf, -0.5))


def test_the_ratio_of_an_event_without_any_expected_one_in_a_resample_has_no_upper_limit() -> None:
    # Only the first row expects an event, and a resample is without it in (1 − 1/20)^20 = 36 % of cases.
    p = np.zeros(20)
    p[0] = 0.3
    estimate = to.measure(np.arange(20) % 2, p, "o_e", resamples=99)
    assert estimate.value == pytest.approx(10 / 0.3)
    assert estimate.interval.high == np.inf


def test_ratios_near_the_largest_float_are_compared() -> None:
    # Event rates of 1/2 and 1/6 over 1e-300 expected events: O:E ratios of 5e299 and 1.67e299, whose squares overflow.
    y = np.where(np.arange(60) % 2 == 0, np.arange(60) % 4 == 0, np.arange(60) % 12 == 1)
    groups = to.by_group(Predictions(y, np.full(60, 1e-300), group={"g": np.arange(60) % 2}), "o_e", resamples=39)
    assert [group.estimate.value for group in groups.groups] == pytest.approx([5e299, 1e300 / 6])


def test_a_resample_without_a_row_of_a_class_has_no_kernel_error() -> None:
    rng = np.random.default_rng(1)
    P, y = rng.dirichlet(np.ones(4), size=2), rng.integers(0, 4, 2)
    assert to.measure(y, P, "ece_kde", lens="top-label", resamples=9).value >= 0
