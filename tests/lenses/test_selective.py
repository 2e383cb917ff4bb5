"""Is the risk of answering at a threshold counted right, ties, abstentions and clusters included?"""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma

from tests.data.refused import refused
from trueodds import Predictions
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.selective_risk import selective_risk, selective_risk_of_view, spaced_steps


def plain(errors: NDArray[np.float64]) -> float:
    """AURC as it is defined, of errors in falling order of confidence."""
    return float(np.mean(np.cumsum(errors) / np.arange(1, len(errors) + 1)))


def test_by_hand() -> None:
    # surest first: right, wrong, right, wrong. Risks 0, 1/2, 1/3, 1/2: mean 1/3. Errors last: 0, 0, 1/3, 1/2
    curve = selective_risk(Predictions.from_confidence([0.6, 0.9, 0.8, 0.7], [0, 1, 0, 1]), n_queries=8, resamples=0)
    assert curve.threshold.tolist() == [0.9, 0.8, 0.7, 0.6]
    assert curve.coverage.tolist() == [1 / 8, 2 / 8, 3 / 8, 4 / 8]
    np.testing.assert_allclose(curve.risk, [0, 1 / 2, 1 / 3, 1 / 2], rtol=1e-14)
    assert float(curve) == pytest.approx(1 / 3, rel=1e-14)
    assert (curve.random, curve.ideal) == (0.5, pytest.approx(5 / 24, rel=1e-14))
    assert curve.interval is None
    assert str(curve).endswith("4 of 8 answered (50%)")
    assert set(curve.table) == {"threshold", "coverage", "risk"}


def test_ties_take_the_mean_over_all_their_orders_and_never_the_order_of_rows() -> None:
    c, z = np.array([0.9, 0.7, 0.7, 0.7, 0.2]), np.array([0.0, 1, 0, 1, 0])
    orders = [plain(z[[0, *(1 + i for i in permutation), 4]]) for permutation in itertools.permutations(range(3))]
    assert max(orders) > min(orders)
    for rows in itertools.permutations(range(5)):
        curve = selective_risk(Predictions.from_confidence(c[list(rows)], 1 - z[list(rows)]), resamples=0)
        assert float(curve) == pytest.approx(np.mean(orders), rel=1e-12)
    assert len(curve.threshold) == 3


def test_without_ties_it_is_the_definition_and_a_vector_counts_by_its_largest_class() -> None:
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet([1, 1, 1], 400), rng.integers(0, 3, 400)
    order = np.argsort(-P.max(axis=1))
    wrong = (P.argmax(axis=1) != y)[order].astype(float)
    assert float(selective_risk(Predictions(y, P), resamples=0)) == pytest.approx(plain(wrong), rel=1e-12)


@pytest.mark.parametrize("m", [1, 199, 200, 201, 1000])
def test_of_many_steps_the_first_that_reaches_each_of_200_coverages_is_taken(m: int) -> None:
    coverage = np.cumsum(np.random.default_rng(m).integers(1, 9, m)) * 0.1
    is_reached = coverage[:, None] >= coverage[-1] * np.arange(1, 201) / 200 - 1e-8
    expected = np.arange(m) if m <= 200 else np.unique(is_reached.argmax(axis=0))
    assert spaced_steps(coverage).tolist() == expected.tolist()


def test_a_diagram_has_the_ends_of_steps_and_coverages_within_long_ones() -> None:
    # Steps of 30 %, 0.4 % and 69.6 % of 1000 answers, and coverages at 0.5 %, 1 %, … which are not within half of
    # that of an end: not 0.5 % · 60 = 30 %, nor 0.5 % · 61 = 30.5 %, of which 30.4 % is only 0.1 % away.
    c = np.repeat([0.9, 0.8, 0.7], [300, 4, 696])
    (view,) = as_lens("confidence").views(Predictions.from_confidence(c, np.arange(1000) % 2))
    grid = selective_risk_of_view(view, at=None, resamples=0).at["coverage"]
    inside = [i / 200 for i in range(1, 200) if i not in (60, 61)]
    np.testing.assert_allclose(grid, sorted([0.3, 0.304, 1.0, *inside]), rtol=1e-12)


def test_an_order_without_sense_has_the_error_rate_on_average() -> None:
    # Row j has the weight v_j = Σ_{i ≥ j} 1/i / n in AURC and 1/n in the error rate;
    # n Σ(v_j − 1/n)² → ∫(log u)² du − 1 = 1, so the difference has sd sqrt(.25/200) = .035 in one data set
    # and .0025 over 200: 4 of them.
    rng = np.random.default_rng(0)
    curves = [
        selective_risk(Predictions.from_confidence(rng.random(200), rng.random(200) < 0.5), resamples=0)
        for _ in range(200)
    ]
    assert abs(np.mean([float(curve) - curve.random for curve in curves])) < 0.010


@pytest.mark.slow
def test_the_interval_covers() -> None:
    """Of 100 intervals at 95 % the number that hold the truth is Binomial(100, .95): at least 87 with chance 99.9 %.

    Ten confidences i/10, right with chance i/10: the area in the limit of many rows is the mean over the ten steps of
    their integral, e + (E − N r) log((N + g)/N) with shares for counts.
    """
    levels = np.arange(10, 0, -1) / 10
    truth, before = 0.0, 0.0
    for i, level in enumerate(levels):
        rate = 1 - level
        rise = np.log((i + 1) / i) if i else 0.0
        truth += 0.1 * rate + (before - 0.1 * i * rate) * rise
        before += 0.1 * rate
    n_covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        c = rng.integers(1, 11, 300) / 10
        curve = selective_risk(Predictions.from_confidence(c, rng.random(300) < c), resamples=300, rng=seed)
        assert curve.interval is not None
        n_covered += curve.interval.low <= truth <= curve.interval.high
    assert n_covered >= 87


def test_clusters_are_resampled_whole() -> None:
    """Every row five times: intervals of clusters are as wide as those of single rows, √5 times those of copies."""
    rng = np.random.default_rng(0)
    c = rng.integers(1, 11, 300) / 10
    z, who = rng.random(300) < c, np.repeat(np.arange(300), 5)

    def width(preds: Predictions) -> float:
        interval = selective_risk(preds, resamples=500).interval
        assert interval is not None
        return interval.high - interval.low

    single = width(Predictions.from_confidence(c, z))
    clustered = width(Predictions.from_confidence(c[who], z[who], cluster=who))
    copies = width(Predictions.from_confidence(c[who], z[who]))
    # a 95 % width from 500 draws has a relative sd of about .06; five clusters of copies shrink by 1/√5 = .447
    assert clustered == pytest.approx(single, rel=0.25)
    assert copies == pytest.approx(single / np.sqrt(5), rel=0.25)


def test_a_weight_of_two_is_two_rows_and_of_other_weights_the_ratios_count() -> None:
    c, z, w = [0.9, 0.7, 0.7, 0.4], [0, 1, 0, 1], [2.0, 1.0, 2.0, 1.0]
    weighted = selective_risk(Predictions.from_confidence(c, z, weight=w), at=[0.5, 1.0], resamples=0)
    rows = np.repeat(np.arange(4), [2, 1, 2, 1])
    copies = selective_risk(
        Predictions.from_confidence(np.array(c)[rows], np.array(z)[rows]), at=[0.5, 1.0], resamples=0
    )
    assert float(weighted) == pytest.approx(float(copies), rel=1e-14)
    np.testing.assert_allclose(weighted.at["risk"], copies.at["risk"], rtol=1e-14)
    # Of weights that are multiples of the smallest that one is a row: two right answers, then a wrong one, 1/3 of 1/3.
    # Those of 1 and .7 are worth 1.7²/1.49 rows: a, and b of a wrong answer; with e = b, E = 0 and N = a the sum is
    # e + (E − N e/g)(H(a + b) − H(a)) = b − a (ψ(a + b + 1) − ψ(a + 1)), divided by a + b.
    a, b = 1.7 / 1.49, 0.7 * 1.7 / 1.49
    between = (b - a * (digamma(a + b + 1) - digamma(a + 1))) / (a + b)
    for last, known in ((0.5, 1 / 9), (0.7, between)):
        for scale in (1.0, 1e-20, 3e18):
            weight = [scale, scale * last]
            curve = selective_risk(Predictions.from_confidence([0.9, 0.6], [1, 0], weight=weight), resamples=0)
            assert float(curve) == pytest.approx(known, rel=1e-12)


def test_the_risk_at_a_coverage_by_hand() -> None:
    """Of 10 asked 8 are answered: 4 at .9 of which one is wrong, 4 at .6 of which three are.

    At .2 of the questions, two answers of the first four: 1/4. At .6, four and two of the others: (1 + 1.5)/6.
    At .8 all: 4/8. At 1 nothing is known. Only at .8 is there a threshold: .2 and .6 are inside ties.
    """
    preds = Predictions.from_confidence([0.9] * 4 + [0.6] * 4, [1, 1, 1, 0, 0, 0, 0, 1])
    at = selective_risk(preds, n_queries=10, at=[0.2, 0.6, 0.8, 1.0], resamples=0).at
    np.testing.assert_allclose(at["risk"], [1 / 4, 2.5 / 6, 1 / 2, np.nan], rtol=1e-14)
    np.testing.assert_array_equal(at["threshold"], [np.nan, np.nan, 0.6, np.nan])


def test_a_threshold_has_the_coverage_and_risk_of_answering_at_or_above_it() -> None:
    """Whatever coverages are requested, also with ties of very different sizes and questions without an answer."""
    rng = np.random.default_rng(0)
    c = np.concatenate([np.repeat([0.95, 0.6, 0.4], [40, 150, 70]), rng.random(340)])
    right = rng.random(600) < c
    curve = selective_risk(Predictions.from_confidence(c, right), n_queries=701, at=rng.random(50), resamples=0)
    (view,) = as_lens("confidence").views(Predictions.from_confidence(c, right))
    default = selective_risk_of_view(view, n_queries=701, at=None, resamples=0).at
    points = [point for coverage in curve.at["coverage"] if (point := curve.operating_point(coverage)) is not None]
    rows = [row for table in (curve.table, curve.at, default) for row in zip(
        table["threshold"], table["coverage"], table["risk"], strict=True)]  # fmt: skip
    for threshold, coverage, risk in [*rows, *points]:
        if not np.isnan(threshold):
            answers = c >= threshold
            assert coverage == pytest.approx(answers.sum() / 701, rel=1e-12)
            assert risk == pytest.approx((answers & ~right).sum() / answers.sum(), rel=1e-12)
    assert (~np.isnan(default["threshold"])).sum() > 100
    for point, coverage in zip(points, curve.at["coverage"][curve.at["coverage"] <= 600 / 701], strict=True):
        assert point.coverage >= coverage > (c > point.threshold).sum() / 701


def test_where_no_answer_is_wrong_the_limit_is_the_exact_one_and_not_zero() -> None:
    # 50 answers, none wrong: (1 − high)^50 = .025
    at = selective_risk(Predictions.from_confidence([0.9] * 50, [1] * 50), at=[1.0], resamples=50).at
    assert (at["low"].item(), at["high"].item()) == (0.0, pytest.approx(1 - 0.025 ** (1 / 50), rel=1e-12))
    wrong = selective_risk(Predictions.from_confidence([0.9] * 50, [0] * 50), at=[1.0], resamples=50).at
    assert (wrong["low"].item(), wrong["high"].item()) == (pytest.approx(0.025 ** (1 / 50), rel=1e-12), 1.0)


@pytest.mark.slow
def test_the_limits_at_a_coverage_hold_the_truth() -> None:
    """Confidences uniform on [.5, 1], right as often as they say: the surest share c is wrong in c/4 of its answers.

    Of 50 intervals at 95 % the number that hold the truth is Binomial(50, .95): at least 41 with chance 99.9 %.
    """
    n_covered = np.zeros(3)
    for seed in range(50):
        rng = np.random.default_rng(seed)
        c = rng.uniform(0.5, 1, 400)
        preds = Predictions.from_confidence(c, rng.random(400) < c)
        at = selective_risk(preds, at=[0.3, 0.6, 1.0], resamples=200, rng=seed).at
        n_covered += (at["low"] <= at["coverage"] / 4) & (at["coverage"] / 4 <= at["high"])
    assert (n_covered >= 41).all()


def test_an_order_with_sense_gains_on_a_random_one_and_one_against_it_loses() -> None:
    rng = np.random.default_rng(0)
    c = rng.random(500)
    right = rng.random(500) < c
    good, bad = (selective_risk(Predictions.from_confidence(s, right), resamples=200).gain for s in (c, 1 - c))
    assert good is not None
    assert bad is not None
    assert good.low > 0 > bad.high


def test_settings_out_of_range_are_refused() -> None:
    preds = Predictions.from_confidence([0.9, 0.6], [1, 0])
    wrong = (
        {"n_queries": 1},
        {"n_queries": 2.5},
        {"resamples": -1},
        {"resamples": 1.5},
        {"level": 1.0},
        {"level": "95"},
    )
    for settings in wrong:
        with refused("TO203"):
            selective_risk(preds, **settings)


@pytest.mark.parametrize("at", [[0.5, -0.1], [0.0], [80], [np.nan], ["half"], 0.5], ids=str)
def test_what_is_no_coverage_is_refused(at: Any) -> None:
    with refused("TO203", fix="at=[0.8]"):
        selective_risk(Predictions.from_confidence([0.9, 0.6], [1, 0]), at=at)


def test_a_row_of_weight_zero_is_none() -> None:
    """Also where it is the surest, which is a step of the curve without an answer, or the whole of a cluster."""
    c, z, who = [0.7, 0.6, 0.6, 0.4], [1, 0, 1, 0], [0, 0, 2, 2]
    without = selective_risk(Predictions.from_confidence(c, z, cluster=who), at=[0.5], resamples=99)
    curve = selective_risk(
        Predictions.from_confidence([0.9, *c], [0, *z], weight=[0, 1, 1, 1, 1], cluster=[1, *who]),
        at=[0.5],
        resamples=99,
    )
    assert str(curve) == str(without)
    np.testing.assert_array_equal(curve.threshold, [0.7, 0.6, 0.4])
    for name, column in curve.at.items():
        np.testing.assert_array_equal(column, without.at[name])


def test_large_weights_need_no_memory_of_their_size() -> None:
    """A billion rows in two steps, one half right and one wrong: ∫ (c − 1/2)/c dc from 1/2 is (1 − log 2)/2."""
    preds = Predictions.from_confidence([0.9, 0.6], [1, 0], weight=[5e8, 5e8])
    tracemalloc.start()
    area = float(selective_risk(preds, resamples=0))
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert area == pytest.approx((1 - np.log(2)) / 2, abs=1e-8)  # the sum is 1/(2 n) from the integral at most
    assert used < 2**20


def test_where_all_answers_end_alike_the_limit_of_the_area_is_not_the_area() -> None:
    """50 right: up to r = 1 − .025^(1/50) may be wrong, at worst first: r + ∫ r/c dc from r to 1 = r − r log r."""
    rate = 1 - 0.025 ** (1 / 50)
    for right, low, high in ((1, 0.0, rate - rate * np.log(rate)), (0, 1 - rate + rate * np.log(rate), 1.0)):
        curve = selective_risk(Predictions.from_confidence([0.9] * 50, [right] * 50), resamples=50)
        assert curve.interval is not None
        assert (curve.interval.low, curve.interval.high) == pytest.approx((low, high), rel=1e-12)
        assert curve.gain is None  # nothing is known of the order
    # at worst indeed: of 10,000 answers a share r is wrong, and those are the surest
    worst = plain((np.arange(10_000) < round(rate * 10_000)).astype(float))
    assert worst == pytest.approx(rate - rate * np.log(rate), abs=1e-3)
